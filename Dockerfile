# An image with the command ga3c-tf.
#   docker build --tag ga3c-tf .
#   docker build --tag ga3c-tf:cuda --build-arg EXTRAS=minatar,gpu .
#   docker run --rm --volume "$PWD/runs:/home/ga3c/runs" ga3c-tf train MinAtar/Breakout-v1 --minutes 5 --run-dir runs/breakout
# The second needs `docker run --gpus all` and the NVIDIA container toolkit; TensorFlow brings CUDA itself.

FROM python:3.12-slim AS build
WORKDIR /checkout
COPY setup.py pyproject.toml README.md LICENSE ./
COPY ga3c_tf ga3c_tf
COPY reproduce reproduce
COPY results/paper results/paper
COPY results/weights results/weights
RUN pip wheel --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
ARG EXTRAS=minatar
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir "$(echo /wheels/ga3c_tf-*.whl)[${EXTRAS}]"
RUN useradd --create-home --uid 1000 ga3c && install --directory --owner ga3c /home/ga3c/runs
USER 1000
WORKDIR /home/ga3c
ENTRYPOINT ["ga3c-tf"]
CMD ["--help"]
