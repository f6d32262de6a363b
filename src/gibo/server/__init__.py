"""The page that shows a run while it happens, and the server that lets any program drive one.

snapshot.py   a run as plain JSON data, whole or what is new since; all that the page knows
belief.py     what the model believes, from the journal's rows
advice.py     a sentence where something is off, from the snapshot alone
trials.py     a folder of trials as plain JSON data
page.py       the page as one HTML text, for the server (`gibo watch`) and as a file (`gibo report`)
watch.py      serves the page and its updates on 127.0.0.1
beside.py     the page beside a run of this process
control.py    what a page with a token may do to a run
serve.py      ask and tell over HTTP and over standard input and output
loopback.py   what both servers have in common: who may speak to them, and how much
"""
