"""gibo inside other libraries. A module is imported only on request.

::

    from gibo.integrations.optuna import GIBOSampler        # needs the extra: pip install 'gibo[optuna]'
    from gibo.integrations.scipy import minimize            # scipy.optimize.minimize(f, x0, method=minimize)
    from gibo.integrations.tensorboard import TensorBoard   # needs the extra tensorboard; callback=TensorBoard("logs")
"""
