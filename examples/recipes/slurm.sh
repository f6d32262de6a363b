# Evaluates the queries of a run as tasks of SLURM job arrays. First: gibo init runs/cluster ...; then: bash slurm.sh
mkdir -p tasks
for iteration in $(seq "${ITERATIONS:-10}"); do
    gibo ask runs/cluster --json > tasks/queries.json
    ids=$(grep '"id":' tasks/queries.json | tr -dc '0-9\n' | paste -sd, -)
    # A task: the program gets the file of queries and an id; the last line that it prints is the value.
    sbatch --wait --array="$ids" --output="tasks/%a.out" --wrap 'python episode.py tasks/queries.json $SLURM_ARRAY_TASK_ID' ||
        echo "some tasks of $ids failed"
    for id in ${ids//,/ }; do
        value=$(tail -n 1 "tasks/$id.out" || true)
        gibo tell runs/cluster "$id" "$value" || gibo tell runs/cluster "$id" --failed "no value, see tasks/$id.out"
    done
done
gibo status runs/cluster
