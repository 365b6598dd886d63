import AppStoreSimulator
import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import perennial

@Suite("docker-compose.yml fits the product") struct ComposeTests {
    @Test func `every setting has a known name and a good value`() throws {
        for (name, service) in try ComposeFile().services where service.isOurs {
            let known =
                SettingName.names + LibpqVariable.names + ["PERENNIAL_COMMAND"]
            #expect(Set(service.environment.keys).subtracting(known) == [], "\(name)")
            let (_, warnings) = try SettingsTests.settings(
                service.environment,
                files: [
                    "/var/lib/perennial/master-key": SettingsTests.key,
                    "/var/lib/perennial/signing-root.pem": try SigningAuthority().rootPEM,
                ], needing: [.database, .masterKey])
            #expect(warnings == [], "\(name)")
        }
        // The simulator writes the certificate, so that only what comes after it may name it.
        for (name, service) in try ComposeFile().services {
            guard service.environment["PERENNIAL_APPSTORE_ROOT_FILE"] != nil else { continue }
            #expect(service.dependsOn["simulator"] == "service_healthy", "\(name)")
        }
        #expect(try ComposeFile().services["worker"]?.environment["PERENNIAL_APPSTORE_ROOT_FILE"] != nil)
        // In production Apple is asked, at its own pace.
        for (name, service) in try ComposeFile(production: true).services {
            let pretended = service.environment.keys.filter {
                $0.hasPrefix("PERENNIAL_APPSTORE_") || $0 == "PERENNIAL_POLL_SPEEDUP"
            }
            #expect(pretended.isEmpty, "\(name)")
        }
    }

    @Test func `every command line is understood by the program it calls`() throws {
        let services = try ComposeFile().services
        #expect(services.count == 8)
        #expect(try ComposeFile(production: true).services.count == 5)
        for (name, service) in services where service.isOurs {
            if let entrypoint = service.entrypoint {
                #expect(entrypoint == ["/usr/share/perennial/scripts/demo"], "\(name)")
            } else {
                _ = try Perennial.parseAsRoot(service.command)
            }
        }
    }

    @Test(arguments: [false, true])
    func `what a service waits for exists, ends by itself or tells that it is well`(production: Bool) throws {
        let file = try ComposeFile(production: production)
        for (name, service) in file.services {
            for (other, condition) in service.dependsOn {
                let awaited = try #require(file.services[other], "\(name) waits for \(other)")
                switch condition {
                case "service_healthy": #expect(awaited.healthCheck != nil, "\(name) waits for \(other)")
                case "service_completed_successfully": #expect(!awaited.isRestarted, "\(name) waits for \(other)")
                default: Issue.record("\(name) waits for \(other) in an unknown way: \(condition)")
                }
            }
            for volume in service.volumes {
                #expect(file.volumes.contains(String(volume.prefix { $0 != ":" })), "\(name): \(volume)")
            }
        }
        let order = file.inOrder
        for (name, service) in file.services {
            let place = try #require(order.firstIndex(of: name))
            for other in service.dependsOn.keys { #expect(order[..<place].contains(other), "\(name) and \(other)") }
        }
    }

    @Test func `the image holds what the commands and health checks call`() throws {
        let dockerfile = try String(contentsOf: ComposeFile.root.appending(path: "Dockerfile"), encoding: .utf8)
        for line in [
            "COPY scripts /usr/share/perennial/scripts", "COPY docs /usr/share/perennial/docs",
            "ENTRYPOINT [\"perennial\"]", "\nUSER 10001:10001\n", "\nHEALTHCHECK ", "ENV PERENNIAL_HTTP_HOST=0.0.0.0",
            "--home-dir /var/lib/perennial",
        ] {
            #expect(dockerfile.contains(line), "\(line)")
        }
        let image = try #require(dockerfile.split(separator: "FROM debian").last)
        for service in try ComposeFile().services.values where service.isOurs {
            // Every Debian has a shell, `find` and `grep`.
            guard let program = service.healthArguments?.first, program != "/bin/sh" else { continue }
            #expect(image.contains(" \(program) "), "\(program) is not installed")
        }
    }

    @Test func `the image is built once, and a password may have any character`() throws {
        let services = try ComposeFile().services
        #expect(services.filter(\.value.isBuilt).keys.sorted() == ["secrets"])
        for (name, service) in services where service.isOurs {
            #expect(service.pullPolicy == (service.isBuilt ? "build" : "never"), "\(name)")
            // The same address for all; the demo's services have it from another file.
            let address = service.environment.filter { $0.key.hasPrefix("PG") }
            #expect(address == services["migrate"]?.environment.filter { $0.key.hasPrefix("PG") }, "\(name)")
            #expect(service.environment["DATABASE_URL"] == nil, "\(name)")
        }
    }

    @Test func `no environment holds the password, which is in a file that two services read`() throws {
        let file = try ComposeFile()
        let path = try #require(file.secrets["database-password"])
        let password = try String(contentsOf: ComposeFile.root.appending(path: path), encoding: .utf8)
            .trimmingCharacters(in: .newlines)
        #expect(password.count > 10)
        for (name, service) in file.services {
            #expect(!service.environment.values.contains { $0.contains(password) }, "\(name)")
            #expect(service.environment["PGPASSWORD"] == nil && service.environment["POSTGRES_PASSWORD"] == nil)
            #expect(
                service.secrets == (["postgres", "secrets"].contains(name) ? ["database-password"] : []), "\(name)")
        }
        #expect(file.services["postgres"]?.environment["POSTGRES_PASSWORD_FILE"] == "/run/secrets/database-password")
        #expect(file.services["secrets"]?.command.last == "/run/secrets/database-password")
    }

    /// libpq's documentation, "The Password File": a colon and a backslash are escaped.
    @Test(arguments: [#"plain"#, #"a:b\c"#, #"  ''"$HOME`&\\: "#])
    func `libpq's file has any password`(password: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "password-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data("\(password)\n".utf8).write(to: folder.appending(path: "password"))
        let process = Process()
        process.executableURL = ComposeFile.root.appending(path: "scripts/demo")
        process.arguments = ["secrets", folder.path, folder.appending(path: "password").path]
        try process.run()
        #expect(await process.ended() == 0)
        let escaped = password.replacing("\\", with: "\\\\").replacing(":", with: "\\:")
        let written = folder.appending(path: "pgpass")
        #expect(try String(contentsOf: written, encoding: .utf8) == "*:*:*:*:\(escaped)\n")
        let mode = try FileManager.default.attributesOfItem(atPath: written.path)[.posixPermissions] as? Int
        #expect(mode == 0o600, "libpq ignores a file that others can read")
    }

    @Test func `the file that operators copy asks Apple, knows its settings, and has secrets in files alone`() throws {
        let file = try ComposeFile(production: true, path: "docs/examples/compose.production.yml")
        #expect(file.services.keys.sorted() == ["backup", "doctor", "migrate", "postgres", "serve", "worker"])
        let known =
            SettingName.names + LibpqVariable.names + ["PERENNIAL_COMMAND"]
        for name in ["doctor", "migrate", "serve", "worker"] {
            let service = try #require(file.services[name])
            _ = try Perennial.parseAsRoot(service.command)
            #expect(Set(service.environment.keys).subtracting(known) == [], "\(name)")
            #expect(service.environment["PERENNIAL_COMMAND"] == "docker compose run --rm -T serve", "\(name)")
            let pretended = service.environment.keys.filter { $0.hasPrefix("PERENNIAL_APPSTORE_") }
            #expect(pretended.isEmpty && service.environment["PERENNIAL_POLL_SPEEDUP"] == nil, "\(name)")
            #expect(service.secrets == ["master-key", "pgpass"] && service.hasInit, "\(name)")
        }
        for (name, service) in file.services {
            #expect(service.environment.keys.allSatisfy { !$0.hasSuffix("PASSWORD") }, "\(name)")
            #expect(service.secrets.allSatisfy { file.secrets[$0] == "./secrets/\($0)" }, "\(name)")
            for other in service.dependsOn.keys { #expect(file.services[other] != nil, "\(name) waits for \(other)") }
        }
        // A process ends by itself within 30 seconds.
        for name in ["serve", "worker"] {
            let service = try #require(file.services[name])
            #expect(service.stopGraceSeconds > 30, "\(name)")
        }
    }

    @Test func `every service tells whether it is well, or ends by itself, or has nothing to ask`() throws {
        for (name, service) in try ComposeFile().services {
            let goesOn = ["postgres", "simulator", "devices", "serve", "worker"].contains(name)
            #expect((service.healthCheck != nil) == goesOn, "\(name)")
            #expect(service.isRestarted == goesOn, "\(name): what goes on comes back with the engine")
            #expect(service.hasNoHealthCheck == (service.isOurs && service.healthCheck == nil), "\(name)")
        }
    }

    @Test func `every service of ours hears signals, every log rotates, and PostgreSQL has shared memory`() throws {
        let services = try ComposeFile().services
        for (name, service) in services {
            #expect(service.hasInit == service.isOurs, "\(name)")
            #expect(service.logDriver == "local", "\(name)")
        }
        #expect(services["postgres"]?.sharedMemory == "256mb")
    }

    @Test func `a worker's metrics are reachable from other containers`() throws {
        let command = try #require(try ComposeFile().services["worker"]).command
        let host = try #require(command.firstIndex(of: "--metrics-host"))
        #expect(command[host + 1] == "0.0.0.0")
    }

    @Test func `continuous integration tests with the toolchain that builds the image`() throws {
        let texts = try ["Dockerfile", ".github/workflows/ci.yml", ".github/workflows/release.yml"].map {
            try String(contentsOf: ComposeFile.root.appending(path: $0), encoding: .utf8)
        }
        let toolchains = texts.map { text in text.firstMatch(of: /swift:[0-9][^ \n]*/).map { String($0.output) } }
        #expect(toolchains[0] != nil && Set(toolchains).count == 1, "\(toolchains)")
    }

    @Test func `the demo's calendar app asks the pretend Server API with the key that the simulator keeps`() throws {
        let script = try String(contentsOf: ComposeFile.root.appending(path: "scripts/lib/demo.sh"), encoding: .utf8)
        let key = "--key-id \(PretendServerKey.id) --issuer-id \(PretendServerKey.issuerID)"
        #expect(script.contains(key), "\(key)")
        #expect(script.contains("--server-key-file \"$state/server-key.p8\""))
        #expect(script.contains("--key-file \"$state/server-key.p8\""))
        #expect(script.contains("app set \"$app\" --verifier server_api"))
        #expect(script.contains("ask_server_api \"$calendar_app\""))
    }

    @Test func `the speed-up fits the length of the pretend months`() throws {
        let script = try String(contentsOf: ComposeFile.root.appending(path: "scripts/lib/demo.sh"), encoding: .utf8)
        let seconds = try #require(script.firstMatch(of: /demo_month_seconds=([0-9]+)/).flatMap { Int($0.output.1) })
        let services = try ComposeFile().services
        #expect(services["worker"]?.environment["PERENNIAL_POLL_SPEEDUP"] == "\(30 * 86_400 / seconds)")
    }
}
