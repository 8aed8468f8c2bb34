import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gents_gym.parquet import MOST, read_parquet


def written(table, **options):
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", **options)
    return buffer.getvalue()


def test_a_table_comes_back():
    table = pa.table({"x": [1.5, None], "name": ["a", "b"], "lists": [[1], [2, 3]], "kind": pa.array(["u", "u"])})
    table = table.set_column(3, "kind", table["kind"].dictionary_encode())
    assert read_parquet(written(table)).equals(table)
    assert read_parquet(written(table.slice(0, 0))).num_rows == 0


@pytest.mark.parametrize(
    "column",
    [
        pa.array(np.zeros(MOST // 8 + 1)),
        pa.array([[0.0] * 1000]).take(pa.array(np.zeros(MOST // 8000 + 1, np.int64))),
        pa.array(["a" * (1 << 20)]).take(pa.array(np.zeros(257, np.int64))),
    ],
    ids=["equal numbers", "equal lists", "one long text"],
)
def test_a_small_file_that_unpacks_to_much_is_refused_unread(column, monkeypatch):
    data = written(pa.table({"x": column}))
    assert len(data) < 200_000
    read = pq.ParquetFile.read

    def watched(file, columns=None, **options):
        assert columns is not None, "it was unpacked"
        return read(file, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "read", watched)
    with pytest.raises(ValueError, match=r"it unpacks to \d+ MB, more than the 268 MB that are allowed"):
        read_parquet(data)
