# Two images of one build:
#   docker build --target agent -t svc-agent .              the agent alone: no shell, no package manager
#   docker build --target agent-tools -t svc-agent-tools .  with the database clients and archivers that
#                                                           backup jobs and probes call
#
# To pin the base images give their digests, which `docker buildx imagetools inspect NAME` prints:
#   --build-arg AGENT_BASE=gcr.io/distroless/nodejs24-debian13:nonroot@sha256:…
# For a registry of your own set NODE_IMAGE and AGENT_BASE to its names. Provenance and a list of contents come from
#   docker buildx build --provenance=true --sbom=true --platform linux/amd64,linux/arm64 …

ARG NODE_IMAGE=node:24-trixie-slim
ARG AGENT_BASE=gcr.io/distroless/nodejs24-debian13:nonroot

# The bundle is the same for every platform.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY scripts scripts
COPY src src
COPY examples examples
RUN node scripts/build.mjs && mkdir /state

FROM ${AGENT_BASE} AS agent
ARG VERSION=1.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="svc-agent" \
      org.opencontainers.image.description="Metrics, logs and health of a clustered workflow orchestration service" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Large buffers go back to the system when they are freed. By default glibc keeps up to 32 MiB of each.
ENV NODE_ENV=production MALLOC_MMAP_THRESHOLD_=262144
COPY --from=build /build/dist /app/dist
COPY rules /app/rules
COPY dashboards /app/dashboards
COPY runbooks /app/runbooks
COPY vocabularies /app/vocabularies
# For svc-agent demo.
COPY deploy/alertmanager /app/deploy/alertmanager
COPY LICENSE /app/LICENSE
# The only place that the agent writes to: the root may be read-only.
COPY --from=build --chown=65532:65532 /state /var/lib/svc-agent
VOLUME ["/var/lib/svc-agent"]
USER 65532:65532
EXPOSE 9464
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
  CMD ["/nodejs/bin/node", "/app/dist/main.js", "healthcheck", "-c", "/etc/svc-agent/agent.yaml"]
# The V8 flags save memory; NODE_OPTIONS does not accept them. Do not add --jitless or --lite-mode: the HTTP client needs
# WebAssembly, and reading logs would take several times the processor time.
ENTRYPOINT ["/nodejs/bin/node", "--max-semi-space-size=1", "--optimize-for-size", "--v8-pool-size=1", "--max-old-space-size=128", "/app/dist/main.js"]
CMD ["run", "-c", "/etc/svc-agent/agent.yaml"]

FROM ${NODE_IMAGE} AS agent-tools
ARG VERSION=1.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="svc-agent-tools" \
      org.opencontainers.image.description="svc-agent with database clients and archivers" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Large buffers go back to the system when they are freed. By default glibc keeps up to 32 MiB of each.
ENV NODE_ENV=production MALLOC_MMAP_THRESHOLD_=262144
# tini ends processes that a command left behind. A database client must not be older than the server that it dumps.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends \
      bzip2 ca-certificates gzip lz4 mariadb-client postgresql-client tar tini xz-utils zstd \
 && rm -rf /var/lib/apt/lists/*
COPY --from=agent /app /app
COPY --from=build --chown=65532:65532 /state /var/lib/svc-agent
VOLUME ["/var/lib/svc-agent"]
USER 65532:65532
EXPOSE 9464
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
  CMD ["/usr/local/bin/node", "/app/dist/main.js", "healthcheck", "-c", "/etc/svc-agent/agent.yaml"]
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/node", "--max-semi-space-size=1", "--optimize-for-size", "--v8-pool-size=1", "--max-old-space-size=128", "/app/dist/main.js"]
CMD ["run", "-c", "/etc/svc-agent/agent.yaml"]
