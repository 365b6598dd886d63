import TestSupport
import Testing

@testable import Postgres

@Suite("A connection without a pooler is seen as one") struct SessionTests {
    @Test("Our own session is recognised")
    func ourOwnSessionIsRecognised() throws {
        let configuration = DatabaseConfiguration(connectionString: try TestServer.required())
        for purpose in [DatabaseNote.Purpose.reads, .transactions] {
            let connection = try Connection.open(ConnectionSettings(configuration, for: purpose), within: .seconds(5))
            #expect(connection.session == .own)
        }
    }
}
