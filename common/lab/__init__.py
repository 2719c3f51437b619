"""How a reader opens the notebooks: in JupyterLab, on copies, or the first one as text."""
