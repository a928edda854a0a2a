"""The C preprocessor of program texts: included files, macros, conditions."""

from elastalog.program.preprocessing.options import Preprocessing as Preprocessing
from elastalog.program.preprocessing.options import preprocessing as preprocessing
from elastalog.program.preprocessing.preprocess import preprocess as preprocess
