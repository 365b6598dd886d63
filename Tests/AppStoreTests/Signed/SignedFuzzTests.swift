import AppStoreSimulator
import Foundation
import SeededRandom
import Testing

@testable import AppStore

/// Damaged signed texts by the thousand, or by the million where `PERENNIAL_FUZZ_INPUTS` says so; see docs/fuzzing.md.
@Suite("No damaged signed text crashes the verifier or counts as signed", .serialized)
struct SignedFuzzTests {
    /// Texts of each kind by two authorities under one verifier that trusts the first.
    private struct Corpus {
        let texts: [[UInt8]]
        /// What was signed: header and payload of the texts that verify.
        let signed: Set<[UInt8]>
        let verifier: SignedTextVerifier
        let mutator: Mutator

        init(seed: UInt64) throws {
            let now = Int64(Date().timeIntervalSince1970 * 1_000)
            let trusted = try SigningAuthority()
            func made(by authority: SigningAuthority) throws -> [String] {
                let transaction = #"""
                    {"transactionId":"1","originalTransactionId":"1","productId":"p","bundleId":"b","environment":\#
                    "Production","purchaseDate":\#(now),"expiresDate":\#(now + 9),"price":4990,"signedDate":\#(now)}
                    """#
                let renewal = #"{"originalTransactionId":"1","productId":"p","autoRenewStatus":1,"signedDate":\#(now)}"#
                let inner = try [transaction, renewal].map { try authority.sign(Array($0.utf8)) }
                let outer = #"""
                    {"notificationType":"DID_RENEW","notificationUUID":"u","signedDate":\#(now),"data":{"bundleId":\#
                    "b","signedTransactionInfo":"\#(inner[0])","signedRenewalInfo":"\#(inner[1])"}}
                    """#
                return inner + [try authority.sign(Array(outer.utf8))]
            }
            let good = try made(by: trusted)
            let all = try (good + made(by: SigningAuthority())).map { Array($0.utf8) }
            texts = all
            signed = Set(good.compactMap { Self.signedPart(of: Array($0.utf8)) })
            verifier = SignedTextVerifier(trusting: try SigningRoot(der: trusted.certificates[2]))
            let tokens = [
                ".", "..", "=", "-", "_", "+", "/", "A", "eyJ", "~1.", "{", "}", "\"", ":", ",", "null", "[]", "none",
                "HS256", "ES384", "\"alg\":\"none\"", "\"crit\":[\"b64\"]", "\"x5c\":[]", "\"signedDate\":0", "1e999",
                "-1", "\u{0}", "\\u0000", "Production", "Sandbox", "Xcode",
            ]
            let parts = all.flatMap { $0.split(separator: UInt8(ascii: ".")).map(Array.init) }
            let decoded = parts.compactMap(Base64URL.decoded)
            mutator = Mutator(samples: all + decoded, tokens: tokens.map { Array($0.utf8) }, seed: seed)
        }

        static func signedPart(of text: [UInt8]) -> [UInt8]? {
            text.lastIndex(of: UInt8(ascii: ".")).map { Array(text[..<$0]) }
        }

        /// The input with this number: a damaged text, parts of several texts, or a text with a damaged part.
        func input(_ number: Int) -> [UInt8] {
            var random = Seeded(seed: mutator.seed ^ 0x5167 &+ UInt64(number))
            func part(_ place: Int) -> [UInt8] {
                let text = texts[Int.random(in: 0..<texts.count, using: &random)]
                return Array(text.split(separator: UInt8(ascii: "."))[place])
            }
            switch Int.random(in: 0..<4, using: &random) {
            case 0: return mutator.input(number)
            case 1: return joined((0..<3).map(part))
            default:
                let whole = texts[Int.random(in: 0..<texts.count, using: &random)]
                var parts = whole.split(separator: UInt8(ascii: ".")).map(Array.init)
                let place = Int.random(in: 0..<parts.count, using: &random)
                let bytes = Base64URL.decoded(parts[place]) ?? []
                let damaged = Mutator(samples: [bytes], tokens: mutator.tokens, seed: mutator.seed).input(number)
                parts[place] = Array(Base64URL.encoded(damaged).utf8)
                return joined(parts)
            }
        }

        private func joined(_ parts: [[UInt8]]) -> [UInt8] { Array(parts.joined(separator: [UInt8(ascii: ".")])) }
    }

    @Test("What was not signed as it is, is refused")
    func fuzz() async throws {
        let run = FuzzTests.Run()
        let corpus = try Corpus(seed: run.seed)
        print("signed texts: seed \(run.seed), \(corpus.texts.count) samples")
        var (accepted, bytes) = (0, 0)
        var reasons: [String: Int] = [:]
        let start = ContinuousClock.now
        for number in run.first..<(run.first + run.inputs) {
            let input = corpus.input(number)
            bytes += input.count
            do throws(SignedTextRefusal) {
                _ = try await corpus.verifier.verify(input)
                accepted += 1
                if !corpus.signed.contains(Corpus.signedPart(of: input) ?? []) {
                    Issue.record("input \(number) of seed \(run.seed) counts as signed, and was not")
                }
            } catch {
                reasons[String("\(error)".prefix { $0 != "(" }), default: 0] += 1
            }
            if number % 1_000_000 == 999_999 { print("signed texts: \(number + 1) inputs") }
        }
        print(
            "signed texts: \(run.inputs) inputs, \(bytes / 1_000_000) MB, \(accepted) as they were signed, "
                + "\(ContinuousClock.now - start), \(FuzzTests.memory), \(reasons.sorted { $0.key < $1.key })")
        #expect(accepted > 0 && accepted < run.inputs)
        let frequent = ["notCompact", "unreadableHeader", "wrongSignature", "otherRoot"]
        #expect(frequent.allSatisfy { reasons[$0] != nil })
    }
}
