/// What a room may import.
struct Wall {
    /// Modules by name.
    let modules: Set<String>
    /// Modules by the beginning of their names.
    let families: [String]

    /// A wall with these openings; the standard library's own modules come with `plus`.
    init(_ modules: Set<String>, families: [String] = [], plus: Set<String> = []) {
        self.modules = modules.union(plus)
        self.families = families
    }

    /// Whether an import of this module is allowed.
    func allows(_ module: String) -> Bool {
        modules.contains(module) || families.contains { module.hasPrefix($0) }
    }

    /// Comes with every toolchain and knows nothing of the world.
    static let toolchain: Set = ["Synchronization", "RegexBuilder"]
    /// The operating system.
    static let system: Set = ["Glibc", "Musl", "Darwin", "Dispatch"]
    /// Dates, JSON and text.
    static let foundation: Set = ["Foundation", "FoundationEssentials"]

    /// Every room has its row, so a new room is a decision; the executable may see everything.
    static let rooms: [String: Wall] = [
        "Sources/Subscriptions": Wall([]),
        "Sources/JSON": Wall([]),
        "sql": Wall([]),
        "Sources/CLibPQ": Wall([]),
        "Sources/AppStore": Wall(
            ["Subscriptions", "JSON", "AsyncHTTPClient", "Crypto", "X509", "SwiftASN1"], families: ["NIO"],
            plus: foundation.union(toolchain)),
        "Sources/Postgres": Wall(["CLibPQ", "DequeModule"], plus: foundation.union(toolchain).union(system)),
        "Sources/Tracking": Wall(
            [
                "Subscriptions", "JSON", "AppStore", "Postgres", "SQL", "Crypto", "DequeModule", "ServiceLifecycle",
                "Logging",
                "Metrics",
            ],
            plus: foundation.union(toolchain)),
        "Sources/Tracking/Webhooks": Wall(
            ["Subscriptions", "JSON", "Postgres", "SQL", "AppStore", "Crypto", "Logging"], families: ["NIO"],
            plus: foundation.union(toolchain)),
        "Sources/Server": Wall(
            [
                "Subscriptions", "JSON", "AppStore", "Tracking", "Hummingbird", "HummingbirdCore", "HTTPTypes",
                "NIOCore", "NIOHTTP1", "NIOHTTPTypesHTTP1", "ServiceLifecycle", "Logging", "Metrics", "CoreMetrics",
                "Mustache",
            ], plus: foundation.union(toolchain)),
        "Sources/AppStoreSimulator": Wall(
            ["Crypto", "X509", "SwiftASN1"], families: ["NIO"],
            plus: foundation.union(toolchain).union(system)),
        "Sources/PerennialClient": Wall(["Crypto", "CryptoKit", "Foundation", "FoundationNetworking"]),
        "Sources/perennial": Wall([], families: [""]),
    ]
}
