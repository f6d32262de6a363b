"""The mutations of `mutants.py`: a name, a file, a text that stands in it once, what takes its place, and the tests."""

from pathlib import Path
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
        "tests/test_jacobian.py",
        gp_posterior_covariance_grows=("S: Array = H - V.T @ V", "S: Array = H + V.T @ V"),
        gp_estimated_mean_is_the_average=(
            "return float(b @ self.observations.targets(0.0)) / float(b @ one)",
            "return float(self.observations.y.mean())",
        ),
        gp_prediction_without_prior_mean=("mean += k.T @ self.a", "mean = k.T @ self.a"),
        gp_likelihood_without_2_pi=("len(self.a) * math.log(2.0 * math.pi)", "len(self.a) * math.log(math.pi)"),
        gp_likelihood_gradient_by_noise=("by_noise = self.noise * float(", "by_noise = float("),
        gp_extension_without_noise=(" + np.diag(new.noise(self.noise))", ""),
        gp_certainty_of_ascent=("for k in range(start, d, 2))", "for k in range(start, d - 2, 2))"),
    ),
    *of(
        "src/gibo/observations.py",
        "tests/test_gp.py",
        gp_gradients_without_noise=("[self.g_noise.ravel(), noise * self", "[0.0 * self.g_noise.ravel(), noise * self"),
        gp_known_noise_is_forgotten=("noise * self.noise_scale + self.known_noise]", "noise * self.noise_scale]"),
        gp_repeats_have_the_noise_of_one=("noise * self.noise_scale + self.known_noise]", "noise + self.known_noise]"),
    ),
    *of(
        "src/gibo/gp.py",
        "tests/test_means.py",
        mean_function_without_slope=("D.T @ self.a + slope, schur", "D.T @ self.a, schur"),
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
        fit_without_log_prior=("return value + _log_prior(gp, self.priors), self", "return value, self"),
        fit_prior_gradient_by_log=("self.priors[name].gradient(x) * x)", "self.priors[name].gradient(x))"),
        fit_shared_lengthscale=("by_log = by_log.sum(keepdims=True)", "by_log = by_log[:1]"),
        fit_beyond_the_support=("np.clip(np.exp(part), *self.priors[name].support)", "np.exp(part)"),
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
        "src/gibo/acquisition/plan.py",
        "tests/acquisition/test_plan.py",
        plan_least_share_of_the_prior=("if X and alpha < least_share *", "if alpha < least_share *"),
        plan_does_not_mirror=("= (low + high - best)[on_face]", "= best[on_face]"),
        plan_repeats_one_query=("gi = gi.extend(x)", "gi = gi"),
    ),
    *of(
        "src/gibo/acquisition/expected_improvement.py",
        "tests/acquisition/test_expected_improvement.py",
        improvement_on_noisy_values=("return data.y - data.noise(gp.noise) * gp.a", "return data.y"),
        improvement_series=("s * (1.0 - s * (3.0 - 15.0 * s))", "s * (1.0 - s * 3.0)"),
        improvement_slope=("((1.0 - r * z) / (2.0 * sigma * sigma))", "((1.0 - r * z) / (sigma * sigma))"),
    ),
    *of(
        "src/gibo/steps.py",
        "tests/test_steps.py",
        step_paper_normalization=("return g / np.linalg.norm(g / ell)", "return g / np.linalg.norm(g * ell)"),
        step_invariant_normalization=(
            "return ell**2 * g / np.linalg.norm(ell * g)",
            "return ell * g / np.linalg.norm(g)",
        ),
        step_schedule_one_late=(
            "reversed(self.pieces) if start <= t)",
            "reversed(self.pieces) if start < t or not start)",
        ),
        step_adam_bias=("v / (1.0 - self.beta2**t)", "v / (1.0 - self.beta2)"),
        step_momentum=('self.momentum * state["v"] + direction', 'self.momentum * (state["v"] + direction)'),
    ),
    *of(
        "src/gibo/optimizers/ars.py",
        "tests/optimizers/test_ars.py",
        ars_ranks_by_the_lower_return=(".max(axis=1), kind", ".min(axis=1), kind"),
        ars_spread_of_all=("returns[used].std(", "returns[complete].std("),
        ars_step_by_all_directions=("self.step_size / len(used) *", "self.step_size / self.directions *"),
    ),
    *of(
        "src/gibo/optimizers/cma.py",
        "tests/optimizers/test_cma.py",
        cma_noise_never_changes_sigma=("self._strategy.sigma *= self._noise.treat()", "self._noise.treat()"),
        cma_noise_always_grows_sigma=("self._strategy.sigma *= self._noise.treat()", "self._strategy.sigma *= 1.1"),
        cma_no_cap_is_the_cap=("np.inf if self.cap is None else self.cap", "1 / 3 if self.cap is None else self.cap"),
        cma_failure_is_the_best=("worst = min(values)", "worst = max(values)"),
    ),
    *of(
        "src/gibo/policies/normalizer.py",
        "tests/policies/test_normalizer.py",
        states_merged_without_difference=(" + delta**2 * (self.count * (other.count / count))", ""),
        states_without_floor=(
            "std[std <= np.maximum(FLOOR, RELATIVE_FLOOR * np.abs(self.mean))] = 1.0",
            "std[std == 0.0] = 1.0",
        ),
        states_gradient_re_expressed=("W -= b[..., np.newaxis] * self.shift", "W += b[..., np.newaxis] * self.shift"),
    ),
    *of(
        "src/gibo/policies/rollout.py",
        "tests/policies/test_rollout.py",
        episode_shift_once=("(value - steps * shift) * scale", "(value - shift) * scale"),
        episode_one_step_more=("if steps == limit:", "if steps == limit + 1:"),
    ),
    *of(
        "src/gibo/policies/task.py",
        "tests/policies/test_task.py",
        episodes_share_a_seed=(
            'seeds = [(natural("seed", seed), e) for e',
            'seeds = [(natural("seed", seed), 0) for e',
        ),
        episodes_judged_by_those_learnt_from=(
            'seeds = [(natural("seed", seed), e, 1) for e',
            'seeds = [(natural("seed", seed), e) for e',
        ),
    ),
    *of(
        f"{BOARD}/statistics.py",
        f"{BOARD_TESTS}/test_leaderboard.py::test_ranks_share_what_is_equal",
        f"{BOARD_TESTS}/test_leaderboard.py::test_ranks_are_of_the_last_look_over_the_trials_that_all_methods_ran",
        f"{BOARD_TESTS}/test_leaderboard.py::test_the_interval_of_a_mean_rank_is_that_of_95_percent",
        f"{BOARD_TESTS}/test_leaderboard.py::test_evaluations_needed_are_those_of_the_mean_curve",
        interval_of_80_percent=("LEVEL = 0.95", "LEVEL = 0.8"),
        interval_one_sided=("[0.5 - LEVEL / 2, 0.5 + LEVEL / 2]", "[1.0 - LEVEL, LEVEL]"),
        ranks_by_the_half_way_value=("float(run.share[-1]) for run", "float(run.share[len(run.share) // 2]) for run"),
        ranks_of_all_trials=("if all((i, m) in last for m in methods)]", "if any((i, m) in last for m in methods)]"),
        evaluations_to_reach_last=(
            "reached = np.flatnonzero(share >= goal - 1e-9)\n    return float(spent[reached[0]])",
            "reached = np.flatnonzero(share >= goal - 1e-9)\n    return float(spent[reached[-1]])",
        ),
        ties_have_the_best_rank=("above + 0.5 * (equal + 1.0)", "above + 1.0"),
    ),
    *of(
        f"{BOARD}/study.py",
        f"{BOARD_TESTS}/test_leaderboard.py::test_an_improvement_is_the_share_of_the_way_from_the_start_to_the_best_known_value",
        improvement_from_zero=("(float(value) - start) / (float(record", "float(value) / (float(record"),
    ),
    *of(
        f"{BOARD}/run.py",
        f"{BOARD_TESTS}/test_leaderboard.py::test_judged_is_the_recommended_point_after_exactly_so_many_evaluations",
        f"{BOARD_TESTS}/test_judges.py::test_the_best_of_the_luckiest_points_by_new_values_is_judged_too",
        judged_one_value_early=(
            "if len(optimizer.evaluations) in looks:",
            "if len(optimizer.evaluations) + 1 in looks:",
        ),
        judged_anew_by_the_lowest=("int(np.argmax(means))", "int(np.argmin(means))"),
    ),
    *of(
        f"{BOARD}/comparison.py",
        f"{BOARD_TESTS}/test_comparison.py",
        mean_of_all_runs=("cut = n // 4", "cut = 0"),
        equal_runs_are_no_improvement=("+ 0.5 * (a[t][:, None] == b[t])", ""),
        differences_of_unpaired_trials=("sorted(set(a) & set(b))", "sorted(set(a))"),
        interval_of_a_comparison_is_one_sided=("[0.5 - LEVEL / 2, 0.5 + LEVEL / 2]", "[1.0 - LEVEL, LEVEL]"),
        trials_drawn_where_there_is_one=("return all(len(each) > 1 for each in values)", "return True"),
    ),
    *of(
        f"{BOARD}/judges/coco.py",
        f"{BOARD_TESTS}/test_judges.py::test_the_value_without_noise_is_that_of_the_noise_free_function",
        f"{BOARD_TESTS}/test_judges.py::test_the_mean_of_what_is_told_is_that_of_many_values",
        f"{BOARD_TESTS}/test_judges.py::test_noise_is_repeated_with_the_run_and_differs_between_runs",
        coco_noise_in_the_truth=("values.most_common(1)[0][0]", "min(values)"),
        coco_mean_without_noise=("math.exp(0.5 * beta**2)", "1.0"),
        coco_noise_of_all_runs_alike=("% SKIPPED", "% 1"),
    ),
    *of(
        f"{BOARD}/judges/policies.py",
        f"{BOARD_TESTS}/test_judges.py::test_parameters_come_in_a_random_order",
        policies_in_the_published_order=("theta[order] = x", "theta[:] = x"),
    ),
    *of(
        f"{BOARD}/task.py",
        f"{BOARD_TESTS}/test_leaderboard_tasks.py::test_the_noise_is_what_is_written_down",
        large_noise_is_half=('"large": 0.2}', '"large": 0.1}'),
        noise_without_seed=(
            "float(generator(name, seed, 1).standard_normal())",
            "float(generator(name, 1).standard_normal())",
        ),
    ),
    *of(
        f"{BOARD}/functions.py",
        f"{BOARD_TESTS}/test_leaderboard_tasks.py::test_the_optimum_is_two_scales_away_in_every_parameter_on_average",
        f"{BOARD_TESTS}/test_leaderboard_tasks.py::test_the_best_point_has_the_best_value_where_one_is_known",
        optimum_one_scale_away=("AWAY = 2.0", "AWAY = 1.0"),
        rotation_of_no_optimum=("optimum = Q.T @ (1.0 - shift)", "optimum = Q @ (1.0 - shift)"),
    ),
    *of(
        "studies/src/gibo_studies/options.py",
        "studies/tests/test_options.py",
        seeds_share_trials=("PER_SEED = 1000", "PER_SEED = 1"),
    ),
    *of(
        "studies/src/gibo_studies/paper/control/lqr.py",
        "studies/tests/paper/test_lqr.py",
        lqr_return_without_log=("return -float(np.log1p(self.step_costs", "return -float((self.step_costs"),
        lqr_cost_of_the_states_alone=("self.Q + K.T @ self.R @ K)", "self.Q)"),
    ),
    *(
        Mutation(
            f"seeds_share_trials_of_{Path(file).stem}",
            f"studies/src/gibo_studies/{file}",
            f"PER_SEED * self.seed + cell[{trial}]",
            f"self.seed + cell[{trial}]",
            ("studies/tests/test_options.py",),
        )
        for file, trial in (
            ("paper/lqr.py", '"trial"'),
            ("paper/gym.py", '"trial"'),
            ("paper/gradients.py", '"trial"'),
            ("paper/synthetic.py", '"function"'),
            ("leaderboard/study.py", '"trial"'),
        )
    ),
]
