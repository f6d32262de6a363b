# Two parameters of a coffee machine by hand: temperature in °C and seconds of extraction. Run: bash examples/coffee.sh
gibo init runs/coffee --maximize --dim 2 --x0=93,18 --scale=1,0.5
gibo ask runs/coffee
gibo tell runs/coffee 0 6.5
gibo tell runs/coffee 1 --failed "the cup broke"
gibo status runs/coffee
gibo best runs/coffee
gibo export runs/coffee --out coffee.csv
