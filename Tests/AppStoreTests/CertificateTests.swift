import AppStore
import AppStoreSimulator
import AsyncHTTPClient
import Foundation
import Testing

/// A store that speaks HTTPS is asked when its certificate is in order; otherwise it gave no answer, and the reason says what
/// is wrong.
@Suite("A call requires a valid certificate of the store") struct CertificateTests {
    /// Keys are made once.
    private static let identities = Result {
        try StoreCertificate.allCases.map { try StoreIdentity(shows: $0) }
    }

    @Test(arguments: ["localhost", "127.0.0.1"])
    func `a store with a good certificate is asked`(host: String) async throws {
        let answer = try await Self.ask(.good, at: host)
        #expect(answer.failure == nil, "\(answer.failureInFull ?? "")")
        #expect(answer.httpStatus == 200 && answer.response?.status == 21002)
    }

    @Test(
        arguments: [
            (.wrongName, "The store's certificate is for another name than the configured address has;"),
            (.expired, "The store's certificate expired on "),
            (.unknownAuthority, "The store's certificate is signed by an authority that is not trusted here;"),
        ] as [(StoreCertificate, String)])
    func `a store with a bad certificate gives no answer`(certificate: StoreCertificate, words: String) async throws {
        for host in ["localhost", "127.0.0.1"] {
            let answer = try await Self.ask(certificate, at: host)
            let failure = try #require(answer.failure)
            #expect(failure.hasPrefix(words), "\(failure)")
            #expect(answer.response == nil && answer.httpStatus == nil && answer.body.isEmpty && answer.calls == 1)
            #expect(!failure.contains(host) && !failure.contains("hush") && failure.hasSuffix("."), "\(failure)")
            #expect(answer.failureDetail != nil)
        }
    }

    @Test func `without roots of its own the system's count, which the pretend store has none of`() async throws {
        let answer = try await Self.ask(.good, at: "localhost", trusting: nil)
        #expect(answer.failure?.contains("an authority that is not trusted here") == true, "\(answer)")
    }

    @Test func `the reason has the date of expiry`() async throws {
        let failure = try #require(try await Self.ask(.expired, at: "localhost").failure)
        let date = try #require(failure.firstMatch(of: /expired on ([0-9TZ:-]+); check the clock/)?.1, "\(failure)")
        let ago = Date().timeIntervalSince(try Date(String(date), strategy: .iso8601))
        #expect(abs(ago - 86_400) < 600, "\(date)")
    }

    @Test(arguments: ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
    func `a text without certificates is refused`(text: String) {
        #expect(throws: TrustedRoots.Unreadable.self) { try TrustedRoots(pem: text) }
    }

    private static func ask(_ certificate: StoreCertificate, at host: String) async throws -> AppStoreAnswer {
        let identity = try #require(try identities.get().first { $0.certificate == certificate })
        return try await ask(certificate, at: host, trusting: identity.rootPEM)
    }

    /// What a store that shows this certificate answers to one who trusts this root, or the system's.
    private static func ask(
        _ certificate: StoreCertificate, at host: String, trusting root: String?
    ) async throws -> AppStoreAnswer {
        let identity = try #require(try identities.get().first { $0.certificate == certificate })
        var setUp = SimulatorOptions(seed: 1)
        (setUp.port, setUp.customers, setUp.sandboxCustomers) = (0, 0, 0)
        let simulator = Simulator(setUp, identity: identity)
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await simulator.run { port.yield($0) } }
            let listening = try #require(await ports.first { _ in true })
            let options = AppStoreOptions(
                productionURL: "https://\(host):\(listening)/verifyReceipt", connectTimeout: .seconds(2),
                deadline: .seconds(10), trustedRoots: try root.map { try TrustedRoots(pem: $0) })
            // An inspection of the certificate ends after two seconds, which a loaded machine can exceed.
            for _ in 1...4 {
                let answer = try await ScriptedHTTPStore().verify(LiveTroubleTests.request, options)
                if answer.failure?.contains("could not be verified") != true { return answer }
            }
            return try await ScriptedHTTPStore().verify(LiveTroubleTests.request, options)
        }
    }
}
