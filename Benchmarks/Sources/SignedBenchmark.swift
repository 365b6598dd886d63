import AppStoreSimulator
import ArgumentParser
import Foundation
import NIOCore
import Postgres
import Subscriptions

/// What Apple's signed notifications cost until they are stored.
struct SignedBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signed",
        abstract:
            "Verifies signed texts beside the signature alone; posts notifications as fast as it can.")

    @Option(help: "Rounds of verification; each verifies a thousand texts.")
    var rounds = 10

    @Option(help: "Notifications posted as fast as possible, with and without verification.")
    var posted = 10_000

    private static let port = 8_192
    private static let connections = 32
    /// Apps whose notifications are posted as fast as possible; each may send 2,000 at once.
    private static let apps = 12

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        let authority = try SigningAuthority()
        let texts = SignedTexts(bundleID: World.app.text, authority: authority)
        try await VerificationFigures(texts, rounds: rounds).measure()
        let root = FileManager.default.temporaryDirectory.appending(path: "perennial-benchmark-root.pem")
        try authority.rootPEM.write(to: root, atomically: true, encoding: .utf8)
        world.settings = ["PERENNIAL_APPSTORE_ROOT_FILE": root.path].merging(World.pretendServerAPI) { $1 }
        var apps: [PostingApp] = []
        for number in 0..<Self.apps {
            let bundleID = "\(World.app.text)\(number)"
            try await world.addApp(bundleID)
            apps.append(try await postingApp(bundleID, authority, in: world))
        }
        try world.start("server", ["serve", "--http-port", "\(Self.port)"])
        try await Task.sleep(for: .seconds(2))
        try await measureIntake(world, apps)
    }

    /// An app whose notifications are posted.
    private struct PostingApp {
        let texts: SignedTexts
        let token: String

        /// A notification as a request.
        func request(_ number: Int) throws -> ByteBuffer {
            SignedBenchmark.request(try texts.notification(of: number), token: token)
        }

        /// A notification of the same length whose signature the server does not verify.
        func stripped(_ number: Int) throws -> ByteBuffer {
            SignedBenchmark.request(SignedBenchmark.stripped(try texts.notification(of: number)), token: token)
        }
    }

    private func postingApp(_ bundleID: String, _ authority: SigningAuthority, in world: World) async throws
        -> PostingApp
    {
        let address = try await world.run(["app", "notifications", bundleID]).split(separator: "/").last ?? ""
        return PostingApp(
            texts: SignedTexts(bundleID: bundleID, authority: authority),
            token: address.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    /// Posts notifications as fast as the server takes them: in turn those that it verifies, and those of the same length
    /// that it stores as hints without looking at a signature. They are about many apps, because the server takes a
    /// limited number of each.
    private func measureIntake(_ world: World, _ apps: [PostingApp]) async throws {
        let signed = try (0..<posted).map { try apps[$0 % apps.count].request($0) }
        let unsigned = try (0..<posted).map { try apps[$0 % apps.count].stripped($0) }
        var rates: [(verified: Double, stored: Double)] = []
        for part in 0..<5 {
            let range = (part * posted / 5)..<((part + 1) * posted / 5)
            rates.append((try await rate(of: Array(signed[range])), try await rate(of: Array(unsigned[range]))))
        }
        let verified = rates.map(\.verified).sorted()[2], stored = rates.map(\.stored).sorted()[2]
        print("intake: \(Int(verified))/s verified, \(Int(stored))/s without verification")
        print("verified over without verification: \((verified / stored).shown)")
        let counts = try await world.number(
            "SELECT count(*) AS number FROM ledger.notification WHERE signed_at IS NOT NULL")
        print("stored as verified: \(counts) of \(posted)")
    }

    private func rate(of requests: [ByteBuffer]) async throws -> Double {
        let load = FiniteLoad(port: Self.port, connections: Self.connections)
        let start = ContinuousClock.now
        try await load.send(requests)
        return Double(requests.count) / ((ContinuousClock.now - start) / .seconds(1))
    }

    fileprivate static func request(_ text: String, token: String) -> ByteBuffer {
        let body = #"{"signedPayload":"\#(text)"}"#
        return ByteBuffer(
            string: "POST /v1/notifications/\(token) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    /// The same notification under a header of another algorithm, which is refused before any certificate is read.
    fileprivate static func stripped(_ text: String) -> String {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let header = Data(
            #"{"alg":"HS256","x5c":["\#(String(repeating: "A", count: parts[0].count * 3 / 4 - 40))"]}"#.utf8)
        let encoded = header.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing(
            "=", with: "")
        return "\(encoded).\(parts[1]).\(parts[2])"
    }
}

extension World {
    /// Where a pretend Server API would be: a trusted root file is refused while any address of the store is Apple's.
    static let pretendServerAPI = [
        "PERENNIAL_APPSTORE_SERVER_URL": "http://127.0.0.1:\(simulatorPort)",
        "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL": "http://127.0.0.1:\(simulatorPort)/sandbox",
    ]
}
