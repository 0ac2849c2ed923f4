# syntax=docker/dockerfile:1
# The container image: the program, its configuration, a C library and public CA certificates on an
# otherwise empty root. There is no shell and no package manager in it.
#
#   docker build -t tollgate .                               compiles this commit (make dist)
#   docker build -t tollgate --build-context dist=dist .     takes the release in dist/
#
# `make image` builds the same image without a container engine and without a registry: it makes
# the root file system with the same script and reads the instructions of the last stage below
# (scripts/oci.py). docs/containers.md describes how to run it.

# The release, as `make dist` builds it. Debian 12 has the oldest C library that releases run on.
FROM rust:1.94-bookworm AS compile
WORKDIR /tollgate
COPY . .
# Use this image's compiler: rust-toolchain.toml would fetch the newest.
RUN RUSTUP_TOOLCHAIN=$(rustup toolchain list | head -n 1 | cut -d' ' -f1) make dist

FROM scratch AS dist
COPY --from=compile /tollgate/dist/ /

# The root file system, of Debian packages.
FROM debian:bookworm-slim AS root
RUN apt-get update && apt-get install --yes --no-install-recommends mmdebstrap zstd
COPY scripts/image-root.sh /image-root.sh
COPY --from=dist / /dist/
RUN /image-root.sh /dist /image

FROM scratch
COPY --from=root /image/root/ /
# Holds the folder `tollgate`, which keeps its mode, 0700.
COPY --from=root --chown=65532:65532 /image/state/ /var/lib/
USER 65532:65532
WORKDIR /var/lib/tollgate
ENV PATH=/usr/bin TOLLGATE_DATA_DIR=/var/lib/tollgate
# Clients; the administration; metrics and readiness. By default only the first listens on all
# addresses.
EXPOSE 8080/tcp 8081/tcp 9464/tcp
VOLUME ["/var/lib/tollgate"]
# In-flight replies end within shutdown.grace (1 minute): give the container more time to stop.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["/usr/bin/tollgate", "--config", "/etc/tollgate/tollgate.yaml", "health"]
ENTRYPOINT ["/usr/bin/tollgate", "--config", "/etc/tollgate/tollgate.yaml"]
CMD ["serve"]
