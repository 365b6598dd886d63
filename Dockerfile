# The build stage: the usual toolchain, that of continuous integration, with the standard library linked statically.
FROM swift:6.3-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libpq-dev pkg-config zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# Dependencies change less often than sources, so they have their own layer.
COPY Package.swift ./
RUN swift package resolve
COPY sql ./sql
COPY Sources ./Sources
COPY Tests ./Tests
COPY Benchmarks ./Benchmarks
RUN swift build --configuration release --product perennial --static-swift-stdlib \
    && install -D --strip "$(swift build --configuration release --static-swift-stdlib --show-bin-path)/perennial" /out/perennial

# The runtime stage: one binary, libpq, the certificates for Apple, and curl for health checks and the demo.
FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates curl libpq5 libstdc++6 tzdata zlib1g \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 perennial \
    && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/perennial --create-home perennial
COPY --from=build /out/perennial /usr/local/bin/perennial
COPY scripts /usr/share/perennial/scripts
COPY docs /usr/share/perennial/docs
# A number, which an orchestrator can tell from root.
USER 10001:10001
WORKDIR /var/lib/perennial
# Clients of a container always connect from outside it.
ENV PERENNIAL_HTTP_HOST=0.0.0.0
EXPOSE 8080
# Fits `all` and `serve`. docker-compose.yml has that of a worker, which needs --metrics-port.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=6 \
    CMD curl --fail --silent --max-time 3 "http://127.0.0.1:${PERENNIAL_HTTP_PORT:-8080}/healthz" || exit 1
ENTRYPOINT ["perennial"]
CMD ["all"]
