"""The notebooks of the documentation run, and print what they say."""

import pathlib

import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[3] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_some():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook(path, tmp_path):
    reason = "NOT RUN: nbclient and ipykernel are not installed"
    nbclient = pytest.importorskip("nbclient", reason=reason)
    nbformat = pytest.importorskip("nbformat", reason=reason)
    pytest.importorskip("ipykernel", reason=reason)
    kept = nbformat.read(path, as_version=4)
    ran = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(ran, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()

    def printed(notebook):
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        # As pages results look as the version of pandas has it.
        return [(cell.source, [output.get("data", {}).get("text/plain", output.get("text")) for output in cell.outputs]) for cell in code]

    assert printed(ran) == printed(kept)
