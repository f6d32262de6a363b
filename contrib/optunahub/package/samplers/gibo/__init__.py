from gibo.integrations.optuna import GIBOSampler

__all__ = ["GIBOSampler"]
