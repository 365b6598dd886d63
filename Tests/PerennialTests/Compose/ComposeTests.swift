import AppStoreSimulator
import ArgumentParser
import Foundation
import Testing

@testable import perennial

@Suite("docker-compose.yml fits the product") struct ComposeTests {
    @Test func `every setting has a known name and a good value`() throws {
        for (name, service) in try ComposeFile().services where service.isOurs {
            let known = SettingName.allCases.map(\.rawValue) + LibpqVariable.allCases.map(\.rawValue)
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
    }

    @Test func `every command line is understood by the program it calls`() throws {
        let services = try ComposeFile().services
        #expect(services.count == 8)
        for (name, service) in services where service.isOurs {
            if let entrypoint = service.entrypoint {
                #expect(entrypoint == ["/usr/share/perennial/scripts/demo"], "\(name)")
            } else {
                _ = try Perennial.parseAsRoot(service.command)
            }
        }
    }

    @Test func `what a service waits for exists, ends by itself or tells that it is well`() throws {
        let file = try ComposeFile()
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
            guard let program = service.healthArguments?.first else { continue }
            #expect(image.contains(" \(program) "), "\(program) is not installed")
        }
    }

    @Test func `the image is built once, and a password may have any character`() throws {
        let services = try ComposeFile().services
        #expect(services.filter(\.value.isBuilt).keys.sorted() == ["secrets"])
        for (name, service) in services where service.isOurs {
            #expect(service.pullPolicy == (service.isBuilt ? "build" : "never"), "\(name)")
            #expect(service.environment["PGPASSWORD"] == services["postgres"]?.environment["POSTGRES_PASSWORD"])
            #expect(service.environment["DATABASE_URL"] == nil, "\(name)")
        }
    }

    @Test func `every service tells whether it is well, or ends by itself, or has nothing to ask`() throws {
        for (name, service) in try ComposeFile().services {
            #expect(
                (service.healthCheck != nil) == ["postgres", "simulator", "serve", "worker"].contains(name), "\(name)")
            #expect(service.hasNoHealthCheck == (service.isOurs && service.healthCheck == nil), "\(name)")
        }
    }

    @Test func `the speed-up fits the length of the pretend months`() throws {
        let script = try String(contentsOf: ComposeFile.root.appending(path: "scripts/lib/demo.sh"), encoding: .utf8)
        let seconds = try #require(script.firstMatch(of: /demo_month_seconds=([0-9]+)/).flatMap { Int($0.output.1) })
        let services = try ComposeFile().services
        #expect(services["worker"]?.environment["PERENNIAL_POLL_SPEEDUP"] == "\(30 * 86_400 / seconds)")
    }
}
