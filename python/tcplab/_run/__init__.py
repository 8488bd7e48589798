"""Running experiments: on the cores of this computer or a Dask cluster, in rounds if asked for."""
