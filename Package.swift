// swift-tools-version: 6.1
import PackageDescription

/// Whether `.ci/run` builds. Warnings are errors there, never in a user's build: tomorrow's compiler warns more.
let isCI = Context.environment["CI"] != nil

/// The settings of every target.
let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ] + (isCI ? [.unsafeFlags(["-warnings-as-errors"])] : [])

/// The settings of the targets that tests exercise. The optimiser halves the processor time of a run of all tests; it
/// needs whole modules, because a generic function is not specialised for a caller in another file without them.
let optimizedSettings =
    settings + (isCI ? [.unsafeFlags(["-O", "-whole-module-optimization", "-num-threads", "2"])] : [])

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let asn1 = Target.Dependency.product(name: "SwiftASN1", package: "swift-asn1")
let asyncHTTPClient = Target.Dependency.product(name: "AsyncHTTPClient", package: "async-http-client")
let configuration = Target.Dependency.product(name: "Configuration", package: "swift-configuration")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let deque = Target.Dependency.product(name: "DequeModule", package: "swift-collections")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let hummingbirdTesting = Target.Dependency.product(name: "HummingbirdTesting", package: "hummingbird")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let mustache = Target.Dependency.product(name: "Mustache", package: "swift-mustache")
let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let serviceLifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let x509 = Target.Dependency.product(name: "X509", package: "swift-certificates")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")

let package = Package(
    name: "perennial",
    platforms: [.macOS(.v15), .iOS(.v15)],
    products: [
        .executable(name: "perennial", targets: ["perennial"]),
        .library(name: "PerennialClient", targets: ["PerennialClient"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/swift-server/async-http-client", exact: "1.37.0"),
        .package(url: "https://github.com/apple/swift-asn1", exact: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates", exact: "1.21.1"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/apple/swift-configuration", exact: "1.4.0"),
        .package(url: "https://github.com/apple/swift-crypto", exact: "4.5.2"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", exact: "2.28.1"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", exact: "2.1.1"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", exact: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", exact: "2.37.6"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
        .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
    ],
    targets: [
        .target(name: "Subscriptions", swiftSettings: optimizedSettings),
        .target(name: "JSON", swiftSettings: optimizedSettings),
        .target(
            name: "AppStore",
            dependencies: [
                "Subscriptions", "JSON", asn1, asyncHTTPClient, crypto, nioCore, nioHTTP1, nioPosix, nioSSL, x509,
            ],
            swiftSettings: optimizedSettings),
        .target(
            name: "SQL", path: "sql", exclude: ["README.md", "migrations", "queries", "reports"],
            swiftSettings: optimizedSettings),
        .systemLibrary(name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
        .target(name: "Postgres", dependencies: ["CLibPQ", deque], swiftSettings: optimizedSettings),
        .target(
            name: "Tracking",
            dependencies: [
                "Subscriptions", "JSON", "AppStore", "Postgres", "SQL", crypto, deque, logging, metrics, nioCore,
                nioHTTP1, nioPosix, nioSSL, serviceLifecycle,
            ],
            swiftSettings: optimizedSettings),
        .target(
            name: "Server",
            dependencies: [
                "Subscriptions", "JSON", "AppStore", "Tracking", hummingbird, mustache, nioCore, nioHTTP1,
                serviceLifecycle, logging, metrics,
            ],
            exclude: ["HTTP/openapi.yaml", "Admin/Templates"],
            swiftSettings: optimizedSettings),
        .target(
            name: "AppStoreSimulator",
            dependencies: [asn1, crypto, nioCore, nioPosix, nioSSL, x509], swiftSettings: optimizedSettings),
        .target(
            name: "PerennialClient",
            dependencies: [
                .product(
                    name: "Crypto", package: "swift-crypto", condition: .when(platforms: [.linux, .android, .windows]))
            ],
            swiftSettings: optimizedSettings),
        .executableTarget(
            name: "perennial",
            dependencies: [
                "Subscriptions", "JSON", "AppStore", "Postgres", "SQL", "Tracking", "Server", "AppStoreSimulator",
                argumentParser, configuration, logging, metrics, nioCore, nioPosix, serviceLifecycle, unixSignals,
                yams,
            ],
            swiftSettings: optimizedSettings),
        .executableTarget(
            name: "Benchmarks",
            dependencies: [
                "Subscriptions", "AppStore", "AppStoreSimulator", "Postgres", "Tracking", "Server", argumentParser,
                asyncHTTPClient, crypto, hummingbird, logging, nioCore, nioHTTP1, nioPosix,
            ],
            path: "Benchmarks/Sources", swiftSettings: optimizedSettings),

        .target(
            name: "TestSupport",
            dependencies: [
                "Subscriptions", "AppStore", "Postgres", "SQL", "Tracking", crypto, logging, metrics, nioCore,
                nioPosix,
            ],
            path: "Tests/TestSupport", swiftSettings: optimizedSettings),
        .executableTarget(
            name: "PerennialClientProbe", dependencies: ["PerennialClient"], path: "Tests/PerennialClientProbe",
            swiftSettings: settings),
        .target(name: "SeededRandom", path: "Tests/SeededRandom", swiftSettings: optimizedSettings),
        .testTarget(
            name: "SubscriptionsTests", dependencies: ["Subscriptions", "SeededRandom", "TestSupport"],
            swiftSettings: settings),
        .testTarget(name: "JSONTests", dependencies: ["JSON"], swiftSettings: settings),
        .testTarget(
            name: "AppStoreTests",
            dependencies: [
                "AppStore", "JSON", "AppStoreSimulator", "SeededRandom", "Subscriptions", asn1, asyncHTTPClient, crypto,
                hummingbird, nioCore,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostgresTests",
            dependencies: ["Postgres", "AppStoreSimulator", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "TrackingTests",
            dependencies: [
                "Tracking", "SeededRandom", "TestSupport", asyncHTTPClient, nioCore, nioHTTP1, nioPosix, nioSSL,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "ServerTests", dependencies: ["Server", "JSON", "TestSupport", hummingbirdTesting, nioPosix, yams],
            swiftSettings: settings),
        .testTarget(
            name: "AppStoreSimulatorTests", dependencies: ["AppStoreSimulator", crypto, nioCore, nioPosix],
            swiftSettings: settings),
        .testTarget(
            name: "PerennialClientTests", dependencies: ["PerennialClient", crypto], swiftSettings: settings),
        .testTarget(
            name: "PerennialTests",
            dependencies: ["perennial", "JSON", "AppStoreSimulator", "SeededRandom", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "perennial", "JSON", "Tracking", "Server", "AppStoreSimulator", "PerennialClient",
                "PerennialClientProbe",
                "SeededRandom", "TestSupport", asyncHTTPClient, crypto, nioCore, nioHTTP1, nioPosix, nioSSL,
                serviceLifecycle,
            ],
            swiftSettings: settings),
        .testTarget(name: "TidyTests", swiftSettings: settings),
    ]
)
