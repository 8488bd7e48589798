"""Running experiments: on the cores of this computer or a Dask cluster, in rounds if asked for.

| job | module |
|---|---|
| `run`: plans, results that are there already, what is left | `run`, `repetitions` |
| groups of runs for workers; the workers; their progress | `pool`; `workers`; `progress` |
| a Dask cluster | `cluster` |
| backends, and the kernels that they need | `backends`, `kernels` |
| memory of concurrent runs; files that programs may read | `memory`; `sandbox` |
| stored results checked and repeated | `verify` |
"""
