import Foundation
import Testing
import Yams

/// `docker-compose.yml` as an engine reads it, with every place inside the containers replaced by one of this machine.
struct ComposeFile {
    static let root = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    let services: [String: ComposeService]
    let volumes: Set<String>

    /// Reads the file; `places` are replaced in its text, those that come first before others.
    init(replacing places: [(String, String)] = []) throws {
        let text = try String(contentsOf: Self.root.appending(path: "docker-compose.yml"), encoding: .utf8)
        let replaced = places.reduce(text.replacing(/\$\{[A-Z_]+:-([^}]*)\}/) { $0.output.1 }) {
            $0.replacing($1.0, with: $1.1)
        }
        let file = try #require(try Yams.load(yaml: replaced) as? [String: Any])
        volumes = Set(try #require(file["volumes"] as? [String: Any]).keys)
        services = try #require(file["services"] as? [String: [String: Any]]).mapValues(ComposeService.init)
    }

    /// The services in an order in which each comes after what it depends on.
    var inOrder: [String] {
        var order: [String] = []
        func add(_ name: String) {
            guard !order.contains(name) else { return }
            services[name]?.dependsOn.keys.sorted().forEach(add)
            order.append(name)
        }
        services.keys.sorted().forEach(add)
        return order
    }
}

/// One service.
struct ComposeService {
    /// Replaces the image's own, where given.
    let entrypoint: [String]?
    let command: [String]
    let environment: [String: String]
    /// The condition of each service that comes first.
    let dependsOn: [String: String]
    /// What tells whether it is well.
    let healthCheck: [String]?
    let healthRetries: Int
    let volumes: [String]
    let isRestarted: Bool
    let stopGraceSeconds: Int
    let isOurs: Bool
    let isBuilt: Bool
    let pullPolicy: String?
    /// Whether the image's own health check is switched off.
    let hasNoHealthCheck: Bool

    init(_ fields: [String: Any]) {
        entrypoint = fields["entrypoint"] as? [String]
        command = fields["command"] as? [String] ?? []
        environment = fields["environment"] as? [String: String] ?? [:]
        let conditions = fields["depends_on"] as? [String: [String: String]] ?? [:]
        dependsOn = conditions.compactMapValues { $0["condition"] }
        let check = fields["healthcheck"] as? [String: Any]
        healthCheck = check?["test"] as? [String]
        healthRetries = check?["retries"] as? Int ?? 3
        volumes = fields["volumes"] as? [String] ?? []
        isRestarted = fields["restart"] != nil
        stopGraceSeconds = (fields["stop_grace_period"] as? String).flatMap { Int($0.dropLast()) } ?? 10
        isOurs = fields["image"] as? String == "perennial"
        isBuilt = fields["build"] != nil
        pullPolicy = fields["pull_policy"] as? String
        hasNoHealthCheck = check?["disable"] as? Bool ?? false
    }

    /// The command line as the container runs it, behind the image's entry point.
    var arguments: [String] { (entrypoint ?? ["perennial"]) + command }

    /// The health check's command line.
    var healthArguments: [String]? {
        guard let kind = healthCheck?.first, let words = healthCheck?.dropFirst() else { return nil }
        return kind == "CMD-SHELL" ? ["/bin/sh", "-c"] + words : Array(words)
    }
}
