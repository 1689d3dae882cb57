"""Every number that bounds an input or an output, and where it comes from."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB

#: A file a user writes. 100 000 volumes with a manifest each take about 8 MB.
FILE_BYTES = 10 * MIB
#: Values in one file, after aliases are expanded.
FILE_VALUES = 400_000
#: Levels of nesting in one file.
FILE_DEPTH = 40
#: Problems of one file that are said. Nobody reads more, and each takes about a kilobyte and a tenth of a millisecond.
FILE_PROBLEMS = 1_000
#: Characters of a user's text that a message repeats.
SHOWN_CHARACTERS = 80

#: Kubernetes counts in signed 32-bit integers.
INT32_MAX = 2**31 - 1
#: DNS-1123 label, and a label value.
NAME_CHARACTERS = 63
#: DNS-1123 subdomain.
SUBDOMAIN_CHARACTERS = 253
#: `htr-warmup-<id>` is a Job name and so a label value.
PIPELINE_ID_CHARACTERS = 52

#: Volumes in one campaign, which is ten Jobs. They bound what is held in memory for one file.
CAMPAIGN_VOLUMES = 100_000
#: Volumes in one Job. The API server takes 100 000; a smaller Job keeps its status, its list and its pods readable.
PART_VOLUMES = 10_000
#: `volumes.txt` of one ConfigMap, which may hold 1 MiB in all.
PART_BYTES = 900 * KIB
#: One line of `volumes.txt`: it becomes one environment string, and Linux allows 128 KiB for one.
VOLUME_LINE_BYTES = 100 * KIB
#: What the API server allows in a ConfigMap.
CONFIG_MAP_BYTES = 1 * MIB
#: Client-side apply keeps a copy of the object in an annotation of at most 256 KiB; above this it is not used.
CLIENT_SIDE_APPLY_BYTES = 200 * KIB

#: What a plugin may answer in one message (Argo CD's `ARGOCD_GRPC_MAX_SIZE_MB`, 100 by default).
GENERATED_BYTES = 100 * MIB
#: What `generate` writes to stderr at most.
STDERR_BYTES = 6 * KIB

#: Annotations that GitHub shows for one step, of each level; the rest it drops without a word.
GITHUB_ANNOTATIONS = 10

#: Retries of one volume beyond its first attempt.
BACKOFF_LIMIT_PER_INDEX = 3
#: Retries of a warm-up.
WARMUP_BACKOFF_LIMIT = 2
#: A warm-up's wall-clock budget, in seconds.
WARMUP_SECONDS = 3600
#: From SIGTERM to SIGKILL, in seconds: room for the last shipment of the run log.
GRACE_SECONDS = 120
#: How often the init container looks for the marker, in seconds.
MARKER_POLL_SECONDS = 10
#: How long before the pod's deadline the init container gives up, in seconds.
MARKER_MARGIN_SECONDS = 10
