"""Reads Parquet files, unless their declared unpacked size is absurd for their size."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MOST = 1 << 28  # bytes that any file may unpack to
RATIO = 200  # a larger file may unpack to this many times its size; real results reach 40


def read_parquet(data: bytes) -> pa.Table:
    """Return the table in a file's bytes. Raises a ValueError if it declares to unpack to far more than its size.

    Some kilobytes can hold a column of a billion equal values, or a long text that many rows share.
    """
    limit = max(MOST, RATIO * len(data))
    file = pq.ParquetFile(pa.BufferReader(data))
    _check(_columns_size(file.metadata), limit)
    texts = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
    if texts:
        encoded = pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts).read(columns=texts)
        _check(sum(_text_size(column) for column in encoded.columns), limit)
    return file.read()


def _columns_size(metadata: pq.FileMetaData) -> int:
    """Return the unpacked size in bytes, with texts in their dictionaries."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    columns = [group.column(j) for group in groups for j in range(group.num_columns)]
    return sum(8 * column.num_values + column.total_uncompressed_size for column in columns)


def _text_size(column: pa.ChunkedArray) -> int:
    """Return the most bytes that a dictionary-encoded column of texts takes when decoded."""
    longest = [pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0 for chunk in column.chunks if len(chunk)]
    return len(column) * max(longest, default=0)


def _check(size: int, limit: int) -> None:
    if not 0 <= size <= limit:
        raise ValueError(f"it unpacks to {size / 1e6:.0f} MB, more than the {limit / 1e6:.0f} MB that are allowed")
