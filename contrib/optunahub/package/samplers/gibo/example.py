import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    gain = trial.suggest_float("gain", 0.1, 100.0, log=True)
    angle = trial.suggest_float("angle", -1.0, 1.0)
    delay = trial.suggest_int("delay", 1, 9)
    return (gain / 5.0 - 1.0) ** 2 + (angle - 0.3) ** 2 + 0.1 * (delay - 4) ** 2


if __name__ == "__main__":
    module = optunahub.load_module(package="samplers/gibo")
    sampler = module.GIBOSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=50)
    print(study.best_trial.params)
    print(sampler.recommend(study))
