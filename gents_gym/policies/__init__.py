"""Policy classes Π with their fitting rules: complete tables in, policies out."""
