"""The page that shows a run while it happens, and the server that lets any program drive one.

snapshot.py   a run as plain JSON data, whole or what is new since; all that the page knows
recorded.py   what the model said, from the journal
advice.py     a sentence where something is off, and what a person can do now
trials.py     a folder of trials as plain JSON data
page.py       the page as one HTML text, for the server (`gibo watch`) and as a file (`gibo report`)
replay.py     the last episode of a training as an animated picture
watch.py      serves the page and its updates on 127.0.0.1, also beside a run of this process
bench.py      ask and tell as plain JSON data
serve.py      the same over HTTP and over standard input and output
loopback.py   what both servers have in common: who may speak to them, and how much
"""
