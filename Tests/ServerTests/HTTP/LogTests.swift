import Hummingbird
import HummingbirdTesting
import Logging
import Postgres
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("The log has one line for each request") struct LogTests {
    @Test("Each request is one line with nothing private")
    func oneLinePerRequestAndNothingPrivate() async throws {
        let journal = Journal()
        let away = DatabaseConfiguration(connectionString: "host=127.0.0.1 port=1", connectTimeoutSeconds: 1)
        let database = Database(away) { _ in }
        let server = HTTPServer(
            tracker: .quiet(SubscriptionLedger(database: database)), logger: journal.logger,
            limits: ServerLimits(), keys: KeyCache { TestKey.find($0) })
        let body = #"{"customer":"kim@example.com","receipt":"MIIBASoqKioqKioqKioqKioqKioq"}"#
        try await server.application.test(.router) { client in
            _ = try await client.send(.post, Serving.receipts, secret: TestKey.write.secret, body: "{" + body)
            _ = try await client.send(.get, "/nowhere/kim@example.com")
            let lookup = "/v1/apps/com.example.app/customers/kim@example.com/entitlements"
            let refused = try await client.send(.post, Serving.receipts, secret: TestKey.write.secret, body: body)
            _ = try await client.send(.get, lookup, secret: TestKey.read.secret)
            let requestID = try #require(AnswerBody(refused).text("request_id"))
            // The connections report once that the database is away; the requests do not repeat it.
            let reported = journal.lines.filter { $0.hasPrefix("debug a request could not") && $0.contains(requestID) }
            #expect(reported.count == 1, "\(journal.lines)")
            #expect(!journal.lines.contains { $0.hasPrefix("warning") || $0.hasPrefix("error") })
        }
        await database.close()
        let answered = journal.lines.filter { $0.hasPrefix("debug answered") }
        #expect(answered.count == 4)
        for (line, route) in zip(answered, ["/receipts", "NotFound", "/receipts", "/entitlements"]) {
            #expect(line.contains(route), "\(line)")
        }
        for line in journal.lines {
            #expect(
                !line.contains("kim@example.com") && !line.contains("MIIB") && !line.contains("perennial_"), "\(line)")
        }
    }
}
