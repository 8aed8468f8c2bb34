"""Logs of decisions: tables with named roles become arrays that training, checks and off-policy answers share."""
