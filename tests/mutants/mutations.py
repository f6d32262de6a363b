"""The mutations of `mutants.py`: a name, a file, a text that stands in it once, what takes its place, and the tests."""

from typing import NamedTuple


class Mutation(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def of(file: str, *tests: str, **mutations: tuple[str, str]) -> list[Mutation]:
    """Several mutations of one file with the same tests."""
    return [Mutation(name, file, old, new, tests) for name, (old, new) in mutations.items()]


BOARD = "studies/src/gibo_studies/leaderboard"
BOARD_TESTS = "studies/tests/leaderboard"

MUTATIONS: list[Mutation] = [
    *of(
        "src/gibo/gp.py",
        "tests/test_gp.py",
        gp_posterior_covariance_grows=("S: Array = H - V.T @ V", "S: Array = H + V.T @ V"),
        gp_estimated_mean_is_the_average=(
            "return float(b @ self.observations.targets(0.0)) / float(b @ one)",
            "return float(self.observations.y.mean())",
        ),
        gp_prediction_without_prior_mean=("mean += k.T @ self.a", "mean = k.T @ self.a"),
        gp_likelihood_without_2_pi=("len(self.a) * math.log(2.0 * math.pi)", "len(self.a) * math.log(math.pi)"),
        gp_likelihood_gradient_by_noise=("by_noise = self.noise * float(", "by_noise = float("),
        gp_extension_without_noise=(" + np.diag(self._noise_of(new))", ""),
        mean_function_without_slope=("D.T @ self.a + slope, schur", "D.T @ self.a, schur"),
        gp_certainty_of_ascent=("for k in range(start, d, 2))", "for k in range(start, d - 2, 2))"),
    ),
    *of(
        "src/gibo/observations.py",
        "tests/test_gp.py",
        gp_gradients_without_noise=("[self.g_noise.ravel(), noise * self", "[0.0 * self.g_noise.ravel(), noise * self"),
        gp_known_noise_is_forgotten=("noise * self.noise_scale + self.known_noise]", "noise * self.noise_scale]"),
    ),
    *of(
        "src/gibo/means.py",
        "tests/test_means.py",
        mean_fitted_without_a_prior_of_the_factor=("self.P.T @ self.P + np.diag(self.precision)", "self.P.T @ self.P"),
        mean_fitted_for_any_warp=("(w**2).sum(axis=0) - np.einsum(", "(w**2).sum(axis=0) + np.einsum("),
        mean_of_a_kernel_without_its_slope=("(slopes.sum(axis=1)[:, None] * X - slopes @ points)", "(slopes @ points)"),
    ),
    *of(
        "src/gibo/kernels.py",
        "tests/test_kernels.py",
        kernel_slope_sign=("return -self.dk_da(A, B)", "return self.dk_da(A, B)"),
        kernel_cross_derivative=("-4.0 * self.variance * ddpsi[", "-2.0 * self.variance * ddpsi["),
        matern_third_derivative=("-(125.0 / 24.0) * e", "-(125.0 / 12.0) * e"),
        kernel_distance_always_by_one_product=(
            "EPS * (u.max(initial=0.0) + w.max(initial=0.0)) > LARGEST_ERROR",
            "False",
        ),
    ),
    *of(
        "src/gibo/map_fit.py",
        "tests/test_map_fit.py",
        fit_gradient_by_variance=('"variance": 0.5 * by_s2, "noise"', '"variance": by_s2, "noise"'),
        fit_gradient_by_known_noise=("by_s2 += float(further.dot(diagonal - a * a))", "by_s2 += 0.0"),
        fit_without_log_prior=("return likelihood + log_prior, np", "return likelihood, np"),
        fit_prior_gradient_by_log=("self.priors[name].gradient(x) * x)", "self.priors[name].gradient(x))"),
        fit_shared_lengthscale=("slope = slope.sum(keepdims=True)", "slope = slope[:1]"),
    ),
    *of(
        "src/gibo/acquisition/information.py",
        "tests/acquisition/test_information.py",
        "tests/acquisition/test_plan.py",
        information_ignores_data=("c -= w.dot(self._V)", "c -= 0.0 * w.dot(self._V)"),
        information_without_noise=("- float(w.dot(w)), 0.0) + self._least_variance()", "- float(w.dot(w)), 1e-9)"),
        information_gradient=(
            "(2.0 * float(by_q[d + 1]) - bend * float(u.dot(e))) * u",
            "2.0 * float(by_q[d + 1]) * u",
        ),
        information_extension_forgets=("self.covariance - np.outer(c[0], c[0] / v[0])", "self.covariance"),
    ),
    *of(
        "src/gibo/gap.py",
        "tests/test_gp.py",
        "tests/acquisition/test_information.py",
        gap_without_a_shape=("return own + self.share * self.weight(blocks, blocks2)", "return own"),
        gap_slope_of_the_factor=("by_factor = 2.0 * float(", "by_factor = float("),
        gap_noise_of_the_machine=("self.simulator_noise, noise)", "noise, noise)"),
    ),
    *of(
        "src/gibo/optimizers/sources.py",
        "tests/optimizers/test_sources.py",
        sources_by_means_alone=("if known else y[~simulated]", "if False else y[~simulated]"),
    ),
    *of(
        "src/gibo/optimizers/restricted.py",
        "tests/optimizers/test_sources.py",
        sources_without_costs=("at_source(z))[0]) / cost", "at_source(z))[0])"),
    ),
    *of(
        "src/gibo/acquisition/information.py",
        "tests/acquisition/test_plan.py",
        plan_least_share_of_the_prior=("if X and alpha < least_share *", "if alpha < least_share *"),
        plan_does_not_mirror=("= (low + high - best)[on_face]", "= best[on_face]"),
        plan_repeats_one_query=("gi = gi.extend(x)", "gi = gi"),
    ),
    *of(
        "src/gibo/acquisition/expected_improvement.py",
        "tests/acquisition/test_expected_improvement.py",
        "tests/test_gp.py",
        improvement_on_noisy_values=("return data.y - data.noise(gp.noise) * gp.a", "return data.y"),
        improvement_series=("s * (1.0 - s * (3.0 - 15.0 * s))", "s * (1.0 - s * 3.0)"),
        improvement_slope=("((1.0 - r * z) / (2.0 * sigma * sigma))", "((1.0 - r * z) / (sigma * sigma))"),
    ),
    *of(
        "src/gibo/steps.py",
        "tests/test_steps.py",
        step_paper_normalization=("return g / np.linalg.norm(g / ell)", "return g / np.linalg.norm(g * ell)"),
        step_momentum=("len(direction)) + direction", "len(direction)) + (1.0 - self.momentum) * direction"),
    ),
    *of(
        "src/gibo/acquisition/confidence.py",
        "tests/optimizers/test_default.py",
        bound_is_an_upper_one=("mean - self.beta * sd, mean_gradient", "mean + self.beta * sd, mean_gradient"),
        bound_gradient=("- (0.5 * self.beta / sd) * variance", "- (self.beta / sd) * variance"),
    ),
    *of(
        "src/gibo/optimizers/gibo.py",
        "tests/optimizers/test_gibo.py",
        "tests/optimizers/test_model.py",
        "tests/optimizers/test_default.py",
        gibo_first_design_of_m=("count = max(M, M_first - surveyed) if", "count = M if"),
        gibo_counts_on_what_leaves=("self._window(N_m - M - iterate_comes - baseline_comes)", "self._window(N_m)"),
        gibo_iterate_does_not_count=(
            "return information.extend(z) if iterate_comes and",
            "return information.extend(z) if False and",
        ),
        gibo_shortening_upside_down=(
            "np.log(planned / self._surrogate.hyperparameters.lengthscale)",
            "np.log(self._surrogate.hyperparameters.lengthscale / planned)",
        ),
    ),
    *of(
        "src/gibo/optimizers/model_based.py",
        "tests/optimizers/test_default.py",
        "tests/optimizers/test_gibo.py",
        "tests/optimizers/test_model.py",
        recommended_without_caution=("np.array(X), self.settings.caution)", "np.array(X), 0.0)"),
        start_leaves_the_comparison=("return [start, *window] if self", "return window if self"),
        box_of_twice_the_width=("half = delta * ell if", "half = 2.0 * delta * ell if"),
    ),
    *of(
        "src/gibo/optimizers/model.py",
        "tests/optimizers/test_default.py",
        "tests/optimizers/test_model.py",
        "tests/optimizers/test_units.py",
        interval_without_optimism=("OPTIMISM, OVERCONFIDENCE = 0.5, 2.0", "OPTIMISM, OVERCONFIDENCE = 0.0, 2.0"),
        evidence_sign=("return self.gp.log_likelihood + 0.5 * n", "return self.gp.log_likelihood - 0.5 * n"),
        probability_of_independent_points=(
            "gp.prior_covariance(Z, Z) - W.T @ W)",
            "np.diag(np.diag(gp.prior_covariance(Z, Z) - W.T @ W)))",
        ),
        prior_stays_when_rescaled=("ell.median * math.exp(self.log_factor)", "ell.median"),
        jacobian_in_units_of_scale=("slope = spread / self.scale\n", "slope = spread\n"),
        warp_of_any_likelihood=(
            "for units in candidates]) - 0.5 * squares",
            "for units in candidates]) + 0.5 * squares",
        ),
    ),
    *of(
        "src/gibo/optimizers/units.py",
        "tests/optimizers/test_units.py",
        warp_without_its_spread=(" - len(y) * math.log(self.spread)", ""),
        warp_inverse=("knee - self.width * np.expm1(below)", "knee - self.width * below"),
        warp_slope=("-0.5 * np.log1p(((y - self.centre)", "-np.log1p(((y - self.centre)"),
        mean_is_the_median=("np.sqrt(variance)[..., None] * NODES", "0.0 * np.sqrt(variance)[..., None] * NODES"),
    ),
    *of(
        "src/gibo/optimizers/moves.py",
        "tests/optimizers/test_default.py",
        "tests/optimizers/test_gibo.py",
        step_downhill=("return t + step, state", "return t - step, state"),
        step_forgets=("step, state = self.step.update(", "step, _ = self.step.update("),
    ),
    *of(
        "src/gibo/optimizers/queries.py",
        "tests/acquisition/test_plan.py",
        "tests/optimizers/test_gibo.py",
        directions_of_every_run_alike=("np.random.default_rng([seed, d])", "np.random.default_rng([0, d])"),
        directions_that_prefer_a_side=("Q * np.sign(R.diagonal())", "Q * np.sign(Q[0])"),
        random_queries_in_a_corner=(
            "(upper - lower) * rng.random((M, len(lower)))",
            "0.5 * (upper - lower) * rng.random((M, len(lower)))",
        ),
    ),
    *of(
        "src/gibo/optimizers/scale.py",
        "tests/optimizers/test_default.py::test_the_scale_rule",
        scale_is_never_shrunk=("shrink: float = 0.5", "shrink: float = 1.0"),
        scale_shrinks_with_one_lower_query=(
            "max(found.around) < min(found.here)",
            "min(found.around) < min(found.here)",
        ),
        scale_on_a_plateau=("return self.widen if alike or", "return self.widen if"),
        scale_shrinks_by_what_the_fit_has_done=("left = self.shrink * found.shortened", "left = self.shrink"),
    ),
    *of(
        "src/gibo/optimizers/settings.py",
        "tests/optimizers/test_settings.py",
        count_rounded_the_other_way=('if self.rounding == "up" else', 'if self.rounding == "down" else'),
        window_smaller_than_the_first_design=("max(N_m, M_first + 1)", "N_m"),
    ),
    *of(
        "src/gibo/optimizers/ars.py",
        "tests/optimizers/test_ars.py",
        ars_step_by_all_directions=("self.step_size / len(used) *", "self.step_size / self.directions *"),
    ),
    *of(
        "src/gibo/optimizers/cma.py",
        "tests/optimizers/test_cma.py",
        cma_noise_always_grows_sigma=("self._strategy.sigma *= self._noise.treat()", "self._strategy.sigma *= 1.1"),
        cma_failure_is_the_best=("worst = min(values)", "worst = max(values)"),
    ),
    *of(
        "src/gibo/policies/normalizer.py",
        "tests/policies/test_normalizer.py",
        states_merged_without_difference=(" + delta**2 * (self.count * (other.count / count))", ""),
        states_gradient_re_expressed=("W -= b[..., np.newaxis] * self.shift", "W += b[..., np.newaxis] * self.shift"),
    ),
    *of(
        "src/gibo/policies/environment.py",
        "tests/policies/test_environment.py",
        episode_shift_once=("(value - steps * shift) * scale", "(value - shift) * scale"),
    ),
    *of(
        "src/gibo/policies/task.py",
        "tests/policies/test_task.py",
        episodes_share_a_seed=("act, (seed, e), self.normalize_states", "act, (seed, 0), self.normalize_states"),
    ),
    *of(
        f"{BOARD}/run.py",
        f"{BOARD_TESTS}/test_judges.py::test_the_best_of_the_luckiest_points_by_new_values_is_judged_too",
        judged_anew_by_the_lowest=("int(np.argmax(means))", "int(np.argmin(means))"),
    ),
    *of(
        f"{BOARD}/comparison.py",
        f"{BOARD_TESTS}/test_comparison.py",
        mean_of_all_runs=("cut = n // 4", "cut = 0"),
        interval_of_a_comparison_is_one_sided=("[0.5 - LEVEL / 2, 0.5 + LEVEL / 2]", "[1.0 - LEVEL, LEVEL]"),
    ),
    *of(
        f"{BOARD}/judges/coco.py",
        f"{BOARD_TESTS}/test_judges.py::test_the_value_without_noise_is_that_of_the_noise_free_function",
        f"{BOARD_TESTS}/test_judges.py::test_the_mean_of_what_is_told_is_that_of_many_values",
        coco_mean_without_noise=("math.exp(0.5 * beta**2)", "1.0"),
        coco_noise_in_the_truth=("values.most_common(1)[0][0]", "min(values)"),
    ),
    *of(
        f"{BOARD}/environments.py",
        f"{BOARD_TESTS}/test_judges.py::test_parameters_come_in_a_random_order",
        policies_in_the_published_order=("theta[order] = x", "theta[:] = x"),
    ),
    *of(
        "src/gibo/runs/verdict.py",
        "tests/runs/test_advice.py",
        verdict_turned_round=(
            "gain = (end.value - start.value) * (-1.0 if facts.minimize else 1.0)",
            "gain = (end.value - start.value)",
        ),
        verdict_of_the_model_alone=("if (risen and rise > 1.0) or", "if (rise > 1.0) or"),
    ),
    *of(
        "studies/src/gibo_studies/paper/policy_gradient.py",
        "studies/tests/paper/test_policy_gradient.py",
        gradient_noise_of_many_episodes=("ddof=1) / n * ((n - 1) / (n - 3))", "ddof=1) / n"),
    ),
    *of(
        "studies/src/gibo_studies/study.py",
        "studies/tests/test_options.py",
        seeds_share_trials=("return PER_SEED * self.seed", "return self.seed"),
    ),
    *of(
        "studies/src/gibo_studies/paper/control/lqr.py",
        "studies/tests/paper/test_lqr.py",
        lqr_return_without_log=("return -float(np.log1p(self.simulate(", "return -float((self.simulate("),
    ),
]
