"""Methods that gibo is compared with; they have the face of `gibo.Optimizer`.

Those here are our reading of their papers. Those of other packages are in `foreign`.
"""

from gibo_studies.rivals.best_practice import BestPracticeBO
from gibo_studies.rivals.local_entropy import LocalEntropySearch
from gibo_studies.rivals.min_ucb import MinUCB
from gibo_studies.rivals.mpd import MPD
from gibo_studies.rivals.trust_region_bo import TrustRegionBO

__all__ = ["MPD", "BestPracticeBO", "LocalEntropySearch", "MinUCB", "TrustRegionBO"]
