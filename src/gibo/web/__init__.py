"""The web page of a run, and the server through which any program can drive a run.

snapshot.py   a run as plain JSON data, whole or only the new part; the page knows nothing else
recorded.py   the model's records in the journal
advice.py     a sentence if something is wrong, and what a person can do now
trials.py     a folder of trials as plain JSON data
page.py       the page as one HTML text, for the server (`gibo watch`) and as a file (`gibo report`)
replay.py     the last episode of a training as an animated picture
watch.py      serves the page and its updates on 127.0.0.1, also beside a run of this process
bench.py      ask and tell as plain JSON data
serve.py      the same over HTTP and over standard input and output
loopback.py   the common part of both servers: who may connect, and limits
"""
