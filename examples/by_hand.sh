# A run that a person or another program evaluates. Run in an empty folder: bash by_hand.sh
cat > bench.toml << END
minimize = true
[parameters.gain]
start = 1.0
[parameters.damping]
start = 0.1
END
printf 'gain,damping,value\n1.5,0.2,7.5\n' > earlier.csv

# The commands.
gibo init runs/bench --parameters bench.toml     # or: --dim 6 --scale 0.1 --minimize
gibo ask runs/bench --json                       # the next queries; the same ones until they are told
gibo tell runs/bench 0 12.7                      # query 0 gave 12.7
gibo tell runs/bench 1 --failed "the belt slipped"
gibo tell runs/bench 0 1.27 --correct "a comma"  # it was not 12.7: the journal keeps both, and why
gibo undo runs/bench                             # take back what was told last; gibo undo runs/bench 3: the last three
gibo tell runs/bench --at gain=2.5,damping=0.1 11.9    # a point from elsewhere
gibo import runs/bench earlier.csv               # or many: a column for each parameter, and one named value
gibo status runs/bench
gibo best runs/bench --json
gibo export runs/bench --out bench.csv            # or .json, .parquet
