import Foundation
import Postgres
import Subscriptions
import Testing

@testable import Tracking

@Suite("Secrets are sealed, and API keys are hashed")
struct SecretTests {
    @Test("What was sealed opens for its owner, and differs every time")
    func roundTrip() throws {
        let seal = try SecretSeal(masterKey: TestLedger.seal)
        for secret in ["s", "ünïcode 🔑", String(repeating: "x", count: 4_000)] {
            let sealed = try seal.seal(secret, for: "com.example.app")
            #expect(try seal.open(sealed, for: "com.example.app") == secret)
            #expect(try seal.seal(secret, for: "com.example.app") != sealed)
        }
    }

    @Test("A secret of another owner or key, or with changed bytes, is refused with a sentence")
    func refused() throws {
        let seal = try SecretSeal(masterKey: TestLedger.seal)
        let other = try SecretSeal(masterKey: Array(repeating: 9, count: 32))
        let sealed = try seal.seal("secret", for: "com.example.app")
        var changed = sealed
        changed[changed.count - 1] ^= 1
        let attempts: [(SecretSeal, [UInt8], String)] = [
            (seal, sealed, "com.example.other"), (other, sealed, "com.example.app"), (seal, changed, "com.example.app"),
            (seal, Array(sealed.prefix(10)), "com.example.app"), (seal, [], "com.example.app"),
        ]
        for (seal, bytes, owner) in attempts {
            let error = #expect(throws: LedgerError.self) { _ = try seal.open(bytes, for: owner) }
            #expect(error?.kind == .mismatch)
            #expect(error?.message.contains("PERENNIAL_MASTER_KEY") == true)
        }
        for count in [0, 16, 31, 33] {
            let error = #expect(throws: LedgerError.self) {
                _ = try SecretSeal(masterKey: Array(repeating: 1, count: count))
            }
            #expect(error?.message.contains("\(count) bytes") == true)
        }
    }

    @Test("No secret and no key is anywhere in the database in clear")
    func nowhere() async throws {
        try await withLedger { test in
            let secrets = ["first-shared-secret", "second-shared-secret", "third-shared-secret"]
            try await test.ledger.apps.rotateSecret(of: test.app.bundleID, to: secrets[0])
            try await test.ledger.apps.rotateSecret(of: test.app.bundleID, to: secrets[1])
            try await test.ledger.apps.add("com.example.other", secret: secrets[2])
            let key = try await test.ledger.apps.createKey(scope: .read, for: nil)
            let opened = try test.ledger.apps.secrets(of: try await test.appNow())
            #expect([opened.current, opened.previous] == [secrets[1], secrets[0]])
            let contents = try await test.everything().values.joined().joined(separator: "\n")
            #expect(contents.contains("com.example.other"), "the scan sees nothing")
            for secret in secrets + [key.secret, String(key.secret.dropFirst("perennial_".count))] {
                #expect(!contents.contains(secret))
                let bytes = Array(secret.utf8).map { String(format: "%02x", $0) }.joined()
                #expect(!contents.contains(bytes))
                #expect(!contents.contains(Data(secret.utf8).base64EncodedString()))
            }
            #expect(!contents.contains(key.secret.dropFirst("perennial_".count)))
        }
    }

    @Test("Without a master key a secret is neither stored nor opened, and the sentence says what to do")
    func noMasterKey() async throws {
        try await withLedger { test in
            let blind = SubscriptionLedger(database: test.database)
            let error = await #expect(throws: LedgerError.self) {
                try await blind.apps.rotateSecret(of: test.app.bundleID, to: "x")
            }
            #expect(error?.message.contains("PERENNIAL_MASTER_KEY") == true)
            let secrets = try blind.apps.secrets(of: test.app)
            #expect(secrets.current == nil)
        }
    }

    @Test("After the loss of a master key one rotation is enough, and the secret before it is none")
    func lostMasterKey() async throws {
        try await withLedger { test in
            try await test.ledger.apps.rotateSecret(of: test.app.bundleID, to: "sealed with the lost key")
            let key = try SecretSeal(masterKey: Array(repeating: 9, count: 32))
            let other = SubscriptionLedger(database: test.database, seal: key)
            let before = try await test.appNow()
            let lost = #expect(throws: LedgerError.self) { _ = try other.apps.secrets(of: before) }
            #expect(lost?.kind == .mismatch)
            try await other.apps.rotateSecret(of: test.app.bundleID, to: "new")
            let opened = try other.apps.secrets(of: try await test.appNow())
            #expect(opened.current == "new" && opened.previous == nil)
            #expect(try await other.apps.checkPassword("new", of: test.app.bundleID) == .right)
            // A missing key is another matter: nothing is judged without it.
            let blind = SubscriptionLedger(database: test.database)
            let app = try await test.appNow()
            #expect(#expect(throws: LedgerError.self) { _ = try blind.apps.secrets(of: app) }?.kind == .invalid)
            try await other.apps.rotateSecret(of: test.app.bundleID, to: "newer")
            #expect(try other.apps.secrets(of: try await test.appNow()).previous == "new")
        }
    }

    @Test("A key is found by its secret until it is revoked")
    func keys() async throws {
        try await withLedger { test in
            let key = try await test.ledger.apps.createKey(scope: .write, for: test.app.bundleID)
            #expect(
                try await test.ledger.apps.key(withSecret: key.secret)
                    == APIKey(id: key.id, scope: .write, bundleID: test.app.bundleID, rate: .usual))
            #expect(try await test.ledger.apps.key(withSecret: key.secret + "0") == nil)
            #expect(try await test.text("SELECT length(digest) FROM ledger.api_key") == "32")
            try await test.ledger.apps.revokeKey(key.id)
            #expect(try await test.ledger.apps.key(withSecret: key.secret) == nil)
            #expect(try await test.ledger.apps.keys().map { $0.revokedAt != nil } == [true])
            for (kind, bad) in [
                (.notFound, { try await test.ledger.apps.revokeKey(99) }),
                (.unknownApp("no.app"), { _ = try await test.ledger.apps.createKey(scope: .read, for: "no.app") }),
            ] as [(LedgerError.Kind, () async throws -> Void)] {
                let error = await #expect(throws: LedgerError.self) { try await bad() }
                #expect(error?.kind == kind)
            }
        }
    }

    @Test("Each scope covers the scopes below it", arguments: Scope.allCases)
    func scopes(scope: Scope) {
        let covered: [Scope: [Scope]] = [.read: [.read], .write: [.read, .write], .admin: [.read, .write, .admin]]
        #expect(Scope.allCases.filter(scope.covers) == covered[scope])
    }
}
