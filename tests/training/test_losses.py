"""Losses match their papers, term by term."""

import pytest
import torch
from torch.nn import functional

from accord.errors import ChoiceError, PredictionError
from accord.training._losses import LOSSES, build_loss

CLASSES, COUNT = 4, 9
SAMPLES = torch.tensor([7, 0, 3])
LABELS = torch.tensor([1, 3, 0])


def new_elr(**options):
    return build_loss("elr", samples=COUNT, classes=CLASSES, **options).double()


def draw_logits(seed, *, spread=3.0):
    generator = torch.Generator().manual_seed(seed)
    return spread * torch.randn(3, CLASSES, generator=generator, dtype=torch.float64)


def elr_by_definition(logits, labels, q, *, beta, strength):
    """ELR as its paper defines it, sample by sample: the loss and the new q of the batch."""
    total, targets = 0, []
    for one, label, old in zip(logits, labels, q, strict=True):
        p = (one.exp() / one.exp().sum()).clamp(1e-4, 1 - 1e-4)
        target = beta * old + (1 - beta) * p.detach() / p.detach().sum()
        inner = sum(target[c] * p[c] for c in range(len(p)))
        cross_entropy = one.exp().sum().log() - one[label]
        total = total + cross_entropy + strength * torch.log(1 - inner)
        targets.append(target)
    return total / len(labels), torch.stack(targets)


def value_and_gradient(function, logits):
    logits = logits.clone().requires_grad_()
    value = function(logits)
    return value.detach(), *torch.autograd.grad(value, logits)


@pytest.mark.parametrize(("beta", "strength"), [(0.7, 3.0), (0.9, 7.0), (0.0, 1.0)])
@pytest.mark.parametrize("spread", [3.0, 30.0])  # 30: most probabilities are clamped
def test_elr_equals_the_definition_over_several_epochs(beta, strength, spread):
    loss = new_elr(beta=beta, strength=strength)
    q = torch.zeros(3, CLASSES, dtype=torch.float64)
    for epoch in range(3):
        logits = draw_logits(epoch, spread=spread)
        fast = value_and_gradient(lambda one: loss(one, LABELS, SAMPLES), logits)
        options = {"beta": beta, "strength": strength}
        slow = value_and_gradient(
            lambda one, q=q, options=options: elr_by_definition(one, LABELS, q, **options)[0],
            logits,
        )
        torch.testing.assert_close(fast, slow)
        _, q = elr_by_definition(logits, LABELS, q, **options)
        torch.testing.assert_close(loss.q[SAMPLES], q)


def test_elr_updates_before_it_is_computed():
    """q starts at zero: used before its update, the loss would be cross-entropy."""
    logits = draw_logits(0)
    departed = new_elr()(logits, LABELS, SAMPLES)
    assert departed < functional.cross_entropy(logits, LABELS) - 0.1


def test_elr_remembers_the_samples_of_the_batch_alone():
    loss = new_elr()
    loss(draw_logits(0), LABELS, SAMPLES)
    others = [sample for sample in range(COUNT) if sample not in SAMPLES]
    assert not loss.q[others].any()
    torch.testing.assert_close(loss.q[SAMPLES].sum(dim=1), torch.full((3,), 0.3).double())
    assert not loss.q.requires_grad


def test_elr_learns_nothing_in_evaluation_mode():
    loss = new_elr()
    loss(draw_logits(0), LABELS, SAMPLES)
    before = loss.q.clone()
    loss.eval()(draw_logits(1), LABELS, SAMPLES)
    assert torch.equal(loss.q, before)


def test_elr_goes_on_from_its_state():
    first, second = new_elr(), new_elr()
    first(draw_logits(0), LABELS, SAMPLES)
    second.load_state_dict({name: value.clone() for name, value in first.state_dict().items()})
    values = [one(draw_logits(1), LABELS, SAMPLES).item() for one in (first, second, new_elr())]
    assert values[0] == values[1] != values[2]


def test_elr_stays_finite_where_the_network_is_certain_for_long():
    loss = build_loss("elr", samples=COUNT, classes=CLASSES)
    logits = 200 * functional.one_hot(LABELS, CLASSES).float()
    for _ in range(50):
        value, gradient = value_and_gradient(lambda one: loss(one, LABELS, SAMPLES), logits)
    assert value.isfinite()
    assert gradient.isfinite().all()


def test_elr_computes_in_full_precision_whatever_the_logits_are():
    coarse = draw_logits(0).bfloat16()
    first, second = (build_loss("elr", samples=COUNT, classes=CLASSES) for _ in range(2))
    value = first(coarse, LABELS, SAMPLES)
    assert value.dtype == torch.float32
    assert torch.equal(value, second(coarse.float(), LABELS, SAMPLES))
    assert torch.equal(first.q, second.q)


def test_cross_entropy_is_torchs_own():
    loss = build_loss("cross-entropy", samples=COUNT, classes=CLASSES)
    logits = draw_logits(0).float()
    assert torch.equal(loss(logits, LABELS, SAMPLES), functional.cross_entropy(logits, LABELS))


def test_cross_entropy_of_members_is_their_mean():
    loss = build_loss("cross-entropy", samples=COUNT, classes=CLASSES)
    members = torch.stack([draw_logits(0), draw_logits(1)])
    each = [functional.cross_entropy(logits, LABELS) for logits in members]
    torch.testing.assert_close(loss(members, LABELS, SAMPLES), sum(each) / 2)


@pytest.mark.parametrize("name", LOSSES)
def test_certain_targets_equal_labels_and_others_are_a_mean(name):
    labels = [LABELS, LABELS.roll(1)]
    certain = [functional.one_hot(one, CLASSES).double() for one in labels]
    for logits in [draw_logits(0), torch.stack([draw_logits(0), draw_logits(1)])]:
        if name == "elr" and logits.ndim == 3:
            continue
        values = [
            build_loss(name, samples=COUNT, classes=CLASSES).double()(logits, one, SAMPLES)
            for one in (*labels, *certain, 0.3 * certain[0] + 0.7 * certain[1])
        ]
        torch.testing.assert_close(values[:2], values[2:4])
        torch.testing.assert_close(0.3 * values[0] + 0.7 * values[1], values[4])


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_is_built_by_its_name_and_gives_a_gradient(name):
    loss = build_loss(name, samples=COUNT, classes=CLASSES)
    value, gradient = value_and_gradient(
        lambda one: loss(one, LABELS, SAMPLES), draw_logits(0).float()
    )
    assert value.shape == ()
    assert gradient.any()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    ("logits", "labels", "samples"),
    [
        (torch.zeros(3), LABELS, SAMPLES),
        (torch.zeros(2, CLASSES), LABELS, SAMPLES),
        (torch.zeros(3, CLASSES), LABELS[:2], SAMPLES),
        (torch.zeros(3, CLASSES), LABELS, SAMPLES[:2]),
        (torch.zeros(3, CLASSES), torch.zeros(3, CLASSES + 1), SAMPLES),
        (torch.zeros(1, 1, 3, CLASSES), LABELS, SAMPLES),
    ],
)
def test_batches_that_do_not_match_are_refused(name, logits, labels, samples):
    loss = build_loss(name, samples=COUNT, classes=CLASSES)
    with pytest.raises(PredictionError, match=r"a loss needs logits \(sample, class\).*; got log"):
        loss(logits, labels, samples)


def test_elr_refuses_members():
    with pytest.raises(PredictionError, match=r"got logits \(2, 3, 4\)"):
        new_elr()(torch.zeros(2, 3, CLASSES), LABELS, SAMPLES)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cross-entrpy", {}, "no loss is called 'cross-entrpy'. Did you mean 'cross-entropy'"),
        ("elr", {"bta": 0.5}, "elr has no option 'bta'. Did you mean 'beta'"),
        ("elr", {"beta": "x"}, "elr cannot be built with beta='x': "),
        ("elr", {"beta": 1.0}, r"beta in \[0, 1\) and a strength .*got beta=1.0"),
        ("elr", {"strength": -1.0}, "strength=-1.0"),
    ],
)
def test_wrong_choices_are_refused_with_what_there_is(name, options, message):
    with pytest.raises(ChoiceError, match=message):
        build_loss(name, samples=COUNT, classes=CLASSES, **options)
