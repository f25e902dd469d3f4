#!/usr/bin/env bash
# Boots a training machine: does one job, keeps what it makes, and ends the machine, however the job ends.
#
# The lines before this one, which the deployment writes, set BUCKET, API_KEY_PARAMETER, CODE_REWARDS_URL, MAX_S and
# IDLE_S. The job's name is the machine's tag `code-rewards-job`; all else of it is in the bucket:
#
#   jobs/NAME/job.json     its arguments         jobs/NAME/log/MACHINE.txt  what the machine says
#   jobs/NAME/files/       its own files         jobs/NAME/status.json      running | done | failed | interrupted |
#   jobs/NAME/output/      what it has written                              too_long | idle
#
# A checkpoint is gone on with only if the file `uploaded` is in it, which comes last: a machine may go at any moment.
set -euo pipefail

: "${BUCKET:?}" "${API_KEY_PARAMETER:?}" "${CODE_REWARDS_URL:?}" "${MAX_S:?}" "${IDLE_S:?}"
readonly metadata_url="${METADATA_URL:-http://169.254.169.254}"
readonly home="${TRAINER_HOME:-/opt/code-rewards}"
readonly look_every_s="${LOOK_EVERY_S:-5}" keep_every_s="${KEEP_EVERY_S:-15}" retry_s="${RETRY_S:-3}"
# Of the two minutes between a spot machine's notice and its end.
readonly grace_s="${GRACE_S:-75}"
readonly trainer="$home/trainer" work="$home/work" output="$home/output" log="$home/log.txt"

export PATH="$home/uv/bin:/usr/local/sbin:/usr/local/bin:${PATH:-/usr/sbin:/usr/bin:/sbin:/bin}"
export HOME="${HOME:-/root}"
export CODE_REWARDS_STOP_FILE="$home/stop"

job='' machine='' job_pid='' keeper_pid=''
state=failed exit_code=null asked='' asked_at_s=0

say() { printf '%s %s\n' "$(date -u +%FT%TZ)" "$*" | tee -a "$log"; }

metadata() {
  local token
  token=$(curl -sf -m 3 --retry 3 -X PUT "$metadata_url/latest/api/token" \
    -H 'X-aws-ec2-metadata-token-ttl-seconds: 300') || return 1
  curl -sf -m 3 "$metadata_url/latest/meta-data/$1" -H "X-aws-ec2-metadata-token: $token"
}

retry() {
  local tries=1
  until "$@" >>"$log" 2>&1; do
    if ((tries >= 5)); then
      say "failed for good: $1 ${2:-} ${3:-}"
      return 1
    fi
    sleep $((tries * retry_s))
    tries=$((tries + 1))
  done
}

put() { aws s3 cp --only-show-errors "$@"; }

write_status() {
  printf '{"state":"%s","exit_code":%s,"machine":"%s","at":"%s"}\n' "$1" "$2" "$machine" "$(date -u +%FT%TZ)" |
    put - "s3://$BUCKET/jobs/$job/status.json"
}

install_trainer() {
  say "installing the trainer"
  retry put "s3://$BUCKET/trainer.zip" "$home/trainer.zip"
  python3 -m zipfile -e "$home/trainer.zip" "$trainer"
  if ! command -v uv >/dev/null; then
    retry python3 -m pip install --quiet --root-user-action ignore --target "$home/uv" 'uv>=0.13,<0.14'
  fi
  retry uv sync --quiet --locked --no-dev --extra train --directory "$trainer"
}

# What an earlier machine kept of the same job.
restore_job() {
  retry put "s3://$BUCKET/jobs/$job/job.json" "$home/job.json"
  retry put --recursive "s3://$BUCKET/jobs/$job/files" "$work"
  retry put --recursive "s3://$BUCKET/jobs/$job/output" "$output"
  local checkpoint
  for checkpoint in "$output"/checkpoint-*; do
    [[ -e "$checkpoint/uploaded" ]] || rm -rf "$checkpoint"
  done
}

start_job() {
  local command=("$trainer/.venv/bin/python" -m) arguments=() gpus=0
  python3 - "$home/job.json" >"$home/arguments" <<'PYTHON'
import json, sys

for argument in json.load(open(sys.argv[1]))["arguments"]:
    sys.stdout.write(argument + "\0")
PYTHON
  mapfile -d '' -t arguments <"$home/arguments"
  if compgen -G "$output/checkpoint-*" >/dev/null; then
    arguments+=(--resume-from-checkpoint)
    say "going on from an earlier machine's checkpoint"
  fi
  gpus=$({ nvidia-smi -L || true; } 2>/dev/null | grep -c '^GPU' || true)
  ((gpus < 2)) || command+=(torch.distributed.run --standalone --nproc-per-node "$gpus" -m)
  command+=(code_rewards.train --output-dir "$output" "${arguments[@]}")
  CODE_REWARDS_API_KEY=$(aws ssm get-parameter --name "$API_KEY_PARAMETER" --with-decryption \
    --query Parameter.Value --output text)
  export CODE_REWARDS_API_KEY
  say "starting ${arguments[*]}"
  (cd "$work" && exec setsid env PYTHONUNBUFFERED=1 "${command[@]}") >>"$log" 2>&1 &
  job_pid=$!
  unset CODE_REWARDS_API_KEY
}

# Whole checkpoints first, each with its mark, then what they replace, then all other files.
keep_output() {
  local checkpoint name remote="s3://$BUCKET/jobs/$job/output"
  for checkpoint in "$output"/checkpoint-*; do
    name=${checkpoint##*/}
    [[ -e "$checkpoint/trainer_state.json" && ! -e "$checkpoint/uploaded" ]] || continue
    put --recursive "$checkpoint" "$remote/$name" || continue
    printf '' | put - "$remote/$name/uploaded" || continue
    touch "$checkpoint/uploaded" || continue
    drop_checkpoints_before "${name#checkpoint-}" "$remote"
  done
  aws s3 sync --only-show-errors --exclude 'checkpoint-*' "$output" "$remote"
}

drop_checkpoints_before() {
  local name
  while read -r name; do
    [[ "$name" =~ ^checkpoint-([0-9]+)$ ]] || continue
    if ((BASH_REMATCH[1] < $1)) && [[ ! -d "$output/$name" ]]; then
      aws s3 rm --only-show-errors --recursive "$2/$name"
    fi
  done < <(aws s3 ls "$2/" | sed -n 's/^ *PRE \(.*\)\/$/\1/p')
}

keep_log() { put "$log" "s3://$BUCKET/jobs/$job/log/$machine.txt"; }

keep_in_background() {
  [[ -z "$keeper_pid" ]] || ! kill -0 "$keeper_pid" 2>/dev/null || return 0
  { keep_log || true; keep_output; } >>"$log" 2>&1 &
  keeper_pid=$!
}

ask_to_stop() {
  [[ -z "$asked" ]] || return 0
  asked=$1 asked_at_s=$SECONDS
  touch "$CODE_REWARDS_STOP_FILE"
  say "$2; the job has $grace_s s to save and stop"
}

job_cpu_s() { ps -o cputimes= -s "$job_pid" | awk '{ total += $1 } END { print total + 0 }'; }

is_gpu_busy() {
  { nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits || true; } 2>/dev/null | grep -q '[1-9]'
}

# Until the job has ended, or has had its time to.
watch_job() {
  local kept_at_s=0 active_at_s=$SECONDS cpu_s=0 log_bytes=0 now_bytes now_cpu_s
  while kill -0 "$job_pid" 2>/dev/null; do
    sleep "$look_every_s" &
    wait $! || true
    if ((SECONDS - kept_at_s >= keep_every_s)); then
      kept_at_s=$SECONDS
      keep_in_background
    fi
    now_bytes=$(stat -c %s "$log") now_cpu_s=$(job_cpu_s)
    # A process that only waits uses some CPU, too: less than a fifth of one.
    if ((now_bytes != log_bytes || (now_cpu_s - cpu_s) * 5 > SECONDS - active_at_s + 5)) || is_gpu_busy; then
      active_at_s=$SECONDS log_bytes=$now_bytes cpu_s=$now_cpu_s
    fi
    if metadata spot/instance-action >/dev/null; then
      ask_to_stop interrupted "this spot machine is about to be taken away"
    elif ((SECONDS >= MAX_S)); then
      ask_to_stop too_long "the machine has had its longest time, $MAX_S s"
    elif ((SECONDS - active_at_s >= IDLE_S)); then
      ask_to_stop idle "the job has done nothing for $IDLE_S s"
    fi
    if [[ -n "$asked" ]] && ((SECONDS - asked_at_s >= grace_s)); then
      say "the job did not stop in time"
      return 0
    fi
  done
}

end_job() {
  [[ -n "$job_pid" ]] || return 0
  local patience_s="${PATIENCE_S:-45}" began_at_s=$SECONDS
  [[ "$asked" != interrupted ]] || patience_s=15
  kill -TERM -- "-$job_pid" 2>/dev/null
  while kill -0 -- "-$job_pid" 2>/dev/null && ((SECONDS - began_at_s < patience_s)); do
    sleep 0.5
  done
  kill -KILL -- "-$job_pid" 2>/dev/null
  wait "$job_pid"
  exit_code=$?
  if ((exit_code == 0)); then
    state='done'
  elif [[ -n "$asked" ]]; then
    state=$asked
  fi
}

# Whatever happens, what there is is kept and the machine ends.
finish() {
  set +e
  trap '' TERM INT
  trap - EXIT
  end_job
  if [[ -n "$machine" && -n "$job" ]]; then
    [[ -z "$keeper_pid" ]] || wait "$keeper_pid"
    retry keep_output
    say "the job is over: $state, exit code $exit_code"
    retry keep_log
    retry write_status "$state" "$exit_code"
  fi
  shutdown -h now
}

main() {
  mkdir -p "$home" "$work" "$output"
  rm -f "$CODE_REWARDS_STOP_FILE"
  # Should everything below fail or hang, the machine ends all the same.
  shutdown -h "+$((MAX_S / 60 + 20))"
  trap finish EXIT
  trap 'ask_to_stop interrupted "this machine is being shut down"' TERM INT
  AWS_DEFAULT_REGION=$(metadata placement/region)
  export AWS_DEFAULT_REGION
  machine=$(metadata instance-id)
  job=$(metadata tags/instance/code-rewards-job) || {
    say "this machine has no tag code-rewards-job: start it by npm run train:remote"
    return 1
  }
  say "job $job on $machine"
  retry write_status running null
  restore_job
  install_trainer
  start_job
  watch_job
}

main
