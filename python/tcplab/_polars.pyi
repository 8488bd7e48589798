from polars import *  # noqa: F403
from polars import exceptions as exceptions
