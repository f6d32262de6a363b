"""The web page of a run (`watch.py`), and the server through which any program can drive a run (`serve.py`).

Both answer on this machine only (`loopback.py`). The page knows nothing of a run but its snapshot (`snapshot.py`).
"""
