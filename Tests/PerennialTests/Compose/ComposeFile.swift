import Foundation
import Testing
import Yams

@testable import perennial

/// What an engine runs: `docker-compose.yml` alone in production, with `docker-compose.override.yml` for the demo. Every
/// place inside the containers is replaced by one of this machine.
struct ComposeFile {
    static let root = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    let services: [String: ComposeService]
    let volumes: Set<String>
    /// The file of each secret.
    let secrets: [String: String]

    /// Reads `docker-compose.yml`, or the file `path` alone; `places` are replaced in the text, those that come first
    /// before others.
    init(
        production: Bool = false, path: String = "docker-compose.yml", replacing places: [(String, String)] = []
    ) throws {
        func read(_ name: String) throws -> [String: Any] {
            let text = try String(contentsOf: Self.root.appending(path: name), encoding: .utf8)
            let replaced = places.reduce(text.replacing(/\$\{[A-Z_]+:-([^}]*)\}/) { $0.output.1 }) {
                $0.replacing($1.0, with: $1.1)
            }
            return try #require(try Yams.load(yaml: replaced) as? [String: Any])
        }
        let file = try read(path)
        volumes = Set(try #require(file["volumes"] as? [String: Any]).keys)
        secrets = try #require(file["secrets"] as? [String: [String: String]]).compactMapValues { $0["file"] }
        var services = try #require(file["services"] as? [String: [String: Any]])
        if !production {
            let override = try #require(try read("docker-compose.override.yml")["services"] as? [String: [String: Any]])
            services.merge(override) { $0.merging($1, uniquingKeysWith: Self.merged) }
        }
        self.services = services.mapValues(ComposeService.init)
    }

    /// A field that both files have: of mappings, such as the environment, both parts stay.
    private static func merged(_ first: Any, _ second: Any) -> Any {
        guard let first = first as? [String: Any], let second = second as? [String: Any] else { return second }
        return first.merging(second, uniquingKeysWith: merged)
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
    /// Whether process 1 is one that hands signals on.
    let hasInit: Bool
    let logDriver: String?
    let secrets: [String]
    let sharedMemory: String?
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
        isRestarted = fields["restart"] as? String == "unless-stopped"
        hasInit = fields["init"] as? Bool ?? false
        logDriver = (fields["logging"] as? [String: Any])?["driver"] as? String
        secrets = fields["secrets"] as? [String] ?? []
        sharedMemory = fields["shm_size"] as? String
        stopGraceSeconds = (fields["stop_grace_period"] as? String).flatMap { Int($0.dropLast()) } ?? 10
        isOurs = fields["image"] as? String == "perennial:\(Perennial.version)"
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
