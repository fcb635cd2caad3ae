#!/bin/bash
# Each task of a Slurm array trains one network; all write to one run on a shared file system.
#   sbatch --array=0-4 examples/slurm_array.sh examples/digits.toml /shared/runs/digits
# Options of sbatch override the requests below; without GPUs:
#   sbatch --array=0-4 --gpus-per-task=0 examples/slurm_array.sh SPEC.toml RUN
# A task that is requeued or submitted again resumes.
#SBATCH --job-name=accord
#SBATCH --cpus-per-task=4
#SBATCH --gpus-per-task=1
#SBATCH --ntasks=1
#SBATCH --time=12:00:00
#SBATCH --requeue
set -euo pipefail

spec=${1:?name a spec: sbatch --array=0-4 slurm_array.sh SPEC.toml RUN}
run=${2:?name a folder that all machines see}
: "${SLURM_ARRAY_TASK_ID:?submit as an array: sbatch --array=0-4 …}"

export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
exec accord train "$spec" --out "$run" --networks "$SLURM_ARRAY_TASK_ID"
