import AppStoreSimulator
import Foundation
import Testing

@Suite("`perennial explain --signed` verifies a text without database and network")
struct ExplainSignedProcessTests {
    private static let signedAt = "2026-11-24T10:00:00.000Z"
    private static let milliseconds = 1_795_514_400_000

    @Test("A notification is explained with the transaction in it, and under another root it is refused")
    func notification() async throws {
        let authority = try SigningAuthority(at: Date(timeIntervalSince1970: Double(Self.milliseconds) / 1_000))
        let transaction = try authority.sign(
            Array(#"{"transactionId":"7","price":4990,"signedDate":\#(Self.milliseconds)}"#.utf8))
        let notification = try authority.sign(
            Array(
                """
                {"notificationType":"DID_RENEW","data":{"signedTransactionInfo":"\(transaction)"},\
                "signedDate":\(Self.milliseconds)}
                """.utf8))
        let folder = FileManager.default.temporaryDirectory.appending(path: "signed-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (body, root) = (folder.appending(path: "body.json"), folder.appending(path: "root.pem"))
        try Data(#"{"signedPayload":"\#(notification)"}"#.utf8).write(to: body)
        try Data(authority.rootPEM.utf8).write(to: root)
        let trusting = [
            "PERENNIAL_APPSTORE_ROOT_FILE": root.path, "PERENNIAL_APPSTORE_URL": "https://127.0.0.1/verifyReceipt",
            "PERENNIAL_APPSTORE_SANDBOX_URL": "https://127.0.0.1/sandbox/verifyReceipt",
            "PERENNIAL_APPSTORE_SERVER_URL": "https://127.0.0.1",
            "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL": "https://127.0.0.1/sandbox",
        ]
        let text = try await said(["--signed", body.path], trusting)
        #expect(text.contains("verified, signed \(Self.signedAt)") && text.contains("notificationType = DID_RENEW"))
        #expect(text.contains("data.signedTransactionInfo: verified") && text.contains("  price = 4990"))
        #expect(text.contains("signed by CN=Pretend App Store"))
        let json = try await said(["--signed", body.path, "--format", "json"], trusting)
        let read = try JSONDecoder().decode(Explained.self, from: Data(json.utf8))
        #expect(read.verdict == "verified" && read.signed_at == Self.signedAt)
        #expect(read.signed["data.signedTransactionInfo"]?.claims?["transactionId"] == "7")
        #expect(try await said(["--signed", body.path], [:]).contains("refused: Its chain does not end in the root"))
    }

    private struct Explained: Decodable {
        let verdict: String
        let signed_at: String?
        let claims: [String: String]?
        let signed: [String: Explained]
    }

    private func said(_ arguments: [String], _ environment: [String: String]) async throws -> String {
        let process = try PerennialProcess(["explain"] + arguments, environment: environment)
        #expect(await process.end() == 0)
        let said = process.said
        try process.forget()
        return said
    }
}
