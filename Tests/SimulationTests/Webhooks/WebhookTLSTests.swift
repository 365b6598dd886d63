import AppStoreSimulator
import NIOSSL
import Testing
@testable import Tracking

@Suite("A receiver shows a certificate to be believed before it gets a message") struct WebhookTLSTests {
    @Test(.timeLimit(.minutes(1)))
    func `a receiver with a bad certificate is a failure with a sentence`() async throws {
        let identity = try StoreIdentity()
        var options = SimulatorOptions(seed: 12)
        (options.port, options.customers, options.sandboxCustomers) = (0, 0, 0)
        // It knows no webhooks, so a message that it gets has the answer 404.
        let simulator = Simulator(options, identity: identity)
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let server = Task { try await simulator.run { port.yield($0) } }
        defer { server.cancel() }
        let listening = try #require(await ports.first { _ in true })
        let roots = NIOSSLTrustRoots.certificates(try NIOSSLCertificate.fromPEMBytes(Array(identity.rootPEM.utf8)))
        let expected: [(StoreCertificate, String)] = [
            (.wrongName, "certificate is not one to trust"), (.expired, "certificate is not one to trust"),
            (.unknownAuthority, "certificate is not one to trust"), (.good, "It answered 404."),
        ]
        for (certificate, words) in expected {
            identity.show(certificate)
            let sender = try WebhookSender.live(trusting: roots)
            let call = WebhookCall(
                url: "https://localhost:\(listening)/hook", id: "msg_1", body: Array("{}".utf8),
                secrets: [try WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")])
            // Many at once: a handshake that fails at once finds its call, too.
            await withTaskGroup { group in
                for _ in 0..<50 { group.addTask { await sender.send(call) } }
                for await outcome in group { #expect(outcome.sentence.contains(words), "\(certificate): \(outcome)") }
            }
        }
    }
}
