"""Packaging of ga3c_tf. pyproject.toml holds the settings of the tools only."""

import ast
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent


def version() -> str:
    """Read `__version__` from the source: importing the package would need its dependencies first."""
    for node in ast.parse((ROOT / "ga3c_tf" / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "__version__":
            return ast.literal_eval(node.value)
    raise RuntimeError("ga3c_tf/__init__.py sets no __version__")


def long_description() -> str:
    readme = ROOT / "README.md"
    return readme.read_text(encoding="utf-8") if readme.exists() else ""


setup(
    name="ga3c-tf",
    version=version(),
    description="A TensorFlow 2 reproduction of GA3C: "
    "asynchronous advantage actor-critic on a GPU (ICLR 2017)",
    long_description=long_description(),
    long_description_content_type="text/markdown",
    author="The ga3c_tf authors",
    license="BSD-3-Clause",
    packages=[
        # ga3c_tf/reproduce, a link, is for checkouts and static tools; what is installed comes from the
        # folder itself, since programs that unpack archives, pip among them, may write a link as a file.
        *find_packages(include=["ga3c_tf", "ga3c_tf.*"], exclude=["ga3c_tf.reproduce*"]),
        *(f"ga3c_tf.{package}" for package in find_packages(include=["reproduce", "reproduce.*"])),
        "ga3c_tf.reproduce.paper",
        "ga3c_tf.trained.published",
    ],
    # the paper's records, which `reproduce` compares with, and the published weights
    package_dir={
        "ga3c_tf.reproduce": "reproduce",
        "ga3c_tf.reproduce.paper": "results/paper",
        "ga3c_tf.trained.published": "results/weights",
    },
    package_data={
        "ga3c_tf": ["py.typed"],
        "ga3c_tf.reproduce.paper": ["*"],
        # The wheel must stay below 30 MB: it has no pictures, and of Atari games only Pong's weights.
        "ga3c_tf.trained.published": [
            "registry.txt",
            *(f"**/*.{kind}" for kind in ("json", "csv", "md")),
            *("pong/weights.npz", "minatar_*/weights.npz"),
        ],
        "ga3c_tf.trained.publishing": ["templates/*"],
        "ga3c_tf.reproduce.figures": ["figures.toml"],
        "ga3c_tf.reproduce.pages": ["templates/*"],
    },
    python_requires=">=3.11,<3.14",
    # Ranges, so that the package fits into other environments. requirements.txt and tests/requirements.txt
    # have the versions that the tests ran with.
    install_requires=[
        "tensorflow>=2.21,<3",
        "keras>=3.12,<4",
        "tensorboard>=2.20,<3",  # tensorflow 2.21 no longer brings it
        "numpy>=2.0,<3",
        "scipy>=1.13,<2",
        "pandas>=2.2,<4",  # the table of measurements of a figure
        "gymnasium[classic-control]>=1.1,<2",  # classic-control: pygame, which draws CartPole for `play`
        "ale-py>=0.11,<1",
        "cloudpickle>=3",
        "opencv-python-headless>=4.10,<6",
        "pillow>=10",
        "imageio>=2.34,<3",
        "imageio-ffmpeg>=0.5,<1",
        "matplotlib>=3.8,<4",
        "click>=8.1,<9",
        "jinja2>=3.1,<4",  # the text of the results pages
        "rich>=13",
        "rich-click>=1.9,<2",  # help in panels
        "psutil>=6,<8",
        "nvidia-ml-py>=12.535",
    ],
    extras_require={
        "gpu": ["tensorflow[and-cuda]>=2.21,<3"],
        "minatar": ["MinAtar>=1.0.15,<2"],
        "export": ["onnx>=1.17,<2", "tf2onnx>=1.17,<2", "safetensors>=0.5,<1", "huggingface_hub>=1,<3"],
        "ray": ["ray>=2.40,<3", "fsspec>=2024.6"],
        "track": ["wandb>=0.31,<1", "mlflow>=3.7,<4"],
        "search": ["optuna>=4,<6"],
        "docs": [
            "mkdocs>=1.6,<2",
            "mkdocs-material>=9.6,<10",
            "mkdocstrings[python]>=0.30,<2",
            "mermaidx>=0.10,<1",  # draws the diagrams while the site is built
        ],
        "dev": [
            "pytest>=8",
            "pytest-timeout>=2.3",
            "pytest-xdist>=3.6",
            "build>=1.2",
            "setuptools>=64",
            "onnxruntime>=1.20,<2",
            "hypothesis>=6.100",
            "ruff>=0.14",
            "mypy>=1.18",
            "import-linter>=2.5",
            "playwright>=1.50,<2",  # drives the system's Chromium, in the tests of the site
            "nbclient>=0.10,<1",  # runs the notebook
            "ipykernel>=6.29,<8",
        ],
    },
    entry_points={"console_scripts": ["ga3c-tf = ga3c_tf.cli.main:program"]},
    classifiers=[
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
