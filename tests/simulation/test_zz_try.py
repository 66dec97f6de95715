import os
from hypothesis import given, settings, strategies as st, Phase, HealthCheck
import tests.simulation.test_rescue_trees as m
N=int(os.environ.get("N","60"))
@settings(max_examples=N, phases=[Phase.generate], suppress_health_check=list(HealthCheck),deadline=None,database=None)
@given(kind=st.sampled_from([m.WORKTREE, m.CLONE]), steps=st.lists(m.STEPS, min_size=3, max_size=14))
def test_it(kind, steps):
    try:
        m.test_any_checkout_comes_back_as_it_was.hypothesis.inner_test(kind=kind, steps=steps)
    except BaseException as e:
        print("STEPS", kind, [tuple(x if not isinstance(x,bytes) or len(x)<60 else x[:5]+b"..." for x in s) for s in steps])
        raise
