from accord.training.networks import ResNet18


def test_resnet18_without_a_size_is_the_small_one():
    assert ResNet18(classes=2, width=4).conv1.kernel_size == (3, 3)
