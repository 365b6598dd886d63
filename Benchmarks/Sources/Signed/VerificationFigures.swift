import AppStore
import AppStoreSimulator
import Crypto
import Foundation

/// What it costs to verify signed texts, beside the signature alone.
struct VerificationFigures {
    private let texts: SignedTexts
    private let root: SigningRoot
    private let rounds: Int

    init(_ texts: SignedTexts, rounds: Int) throws {
        self.texts = texts
        self.rounds = rounds
        root = try SigningRoot(der: texts.authority.certificates[2])
    }

    /// Prints the figures: texts under a known chain, whole notifications, and chains that are not known yet.
    func measure() async throws {
        let compact = try (0..<1_000).map { Array(try texts.transaction(of: $0).utf8) }
        let bare = try compact.map { try BareSignature($0, by: texts.authority.publicKey) }
        let notifications = try (0..<300).map { Array(try texts.notification(of: $0).utf8) }
        let verifier = SignedTextVerifier(trusting: root)
        _ = try await verifier.verify(compact[0])
        var (alone, warm, whole, cold) = ([Int64](), [Int64](), [Int64](), [Int64]())
        for round in 0..<rounds {
            alone += try await timed(bare) { try $0.verify() }
            warm += try await timed(compact) { _ = try await verifier.verify($0) }
            whole += try await timed(notifications) { try await Self.verify($0, by: verifier) }
            let first = round * 20 % compact.count
            cold += try await timed(compact[first..<(first + 20)]) {
                _ = try await SignedTextVerifier(trusting: root).verify($0)
            }
        }
        let figures = [
            ("P-256 alone", alone), ("text, chain known", warm), ("notification", whole), ("text, chain new", cold),
        ]
        for (name, times) in figures { print(line(name, times)) }
        print("text over P-256 alone: \((median(warm) / median(alone)).shown)")
        print("notification over P-256 alone: \((median(whole) / median(alone)).shown)")
    }

    private static func verify(_ notification: [UInt8], by verifier: SignedTextVerifier) async throws {
        let outer = try await verifier.verify(notification)
        let inner = outer.innerTexts
        var payloads: [[UInt8]?] = []
        for text in [inner.transaction, inner.renewal] {
            payloads.append(text == nil ? nil : try await verifier.verify(Array((text ?? "").utf8)).payload)
        }
        let read = SignedNotification(payload: outer.payload, transaction: payloads[0], renewal: payloads[1])
        guard read?.transaction != nil else { throw NotVerified() }
    }

    /// Nanoseconds of each piece of work.
    private func timed<Pieces: Collection>(
        _ pieces: Pieces, _ work: (Pieces.Element) async throws -> Void
    ) async throws -> [Int64] {
        var times: [Int64] = []
        for piece in pieces {
            let start = ContinuousClock.now
            try await work(piece)
            times.append(Int64((ContinuousClock.now - start) / .nanoseconds(1)))
        }
        return times
    }

    private func median(_ times: [Int64]) -> Double { share(0.5, of: times) }

    private func share(_ share: Double, of times: [Int64]) -> Double {
        Double(times.sorted()[min(times.count - 1, Int(Double(times.count) * share))]) / 1_000
    }

    private func line(_ name: String, _ times: [Int64]) -> String {
        "\(name): p50 \(median(times).shown) µs, p99 \(share(0.99, of: times).shown) µs (\(times.count))"
    }
}

/// A text whose signature does not verify makes the figures worthless.
struct NotVerified: Error {}

/// The least that a text costs: one signature over it.
private struct BareSignature: Sendable {
    let key: P256.Signing.PublicKey
    let signature: P256.Signing.ECDSASignature
    let signed: Data

    init(_ compact: [UInt8], by signer: P256.Signing.PublicKey) throws {
        let text = try CompactText(compact)
        key = signer
        signature = try P256.Signing.ECDSASignature(rawRepresentation: text.signature)
        signed = Data(text.signed)
    }

    func verify() throws {
        guard key.isValidSignature(signature, for: signed) else { throw NotVerified() }
    }
}
