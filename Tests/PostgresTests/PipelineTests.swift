import Postgres
import TestSupport
import Testing

@Suite("Few connections serve many reads at once") struct PipelineTests {
    @Test("Ten thousand reads are answered, with failing ones among them", arguments: [1, 2])
    func tenThousandReadsAndFailingOnesAmongThem(_ connections: Int) async throws {
        try await withTestDatabase { _, connectionString in
            let database = Database(
                DatabaseConfiguration(connectionString: connectionString, readConnections: connections)
            ) { print($0) }
            let divide = Statement(name: "divide", sql: "SELECT (840 / $1::int4) AS v, $2::int4 AS id")
            let broken = Statement(name: "broken", sql: "SELECT nonsense")
            let outcomes = await withTaskGroup(of: (Int, Result<Int, DatabaseError>).self) { group in
                for id in 0..<10_000 {
                    group.addTask {
                        do throws(DatabaseError) {
                            if id % 2_500 == 1_250 { _ = try await database.query(broken) }
                            let divisor = id % 1_000 == 777 ? 0 : 2
                            let rows = try await database.query(divide, [.int4(Int32(divisor)), .int4(Int32(id))])
                            return (id, .success(try rows[0].int("id")))
                        } catch {
                            return (id, .failure(error))
                        }
                    }
                }
                return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
            for (id, outcome) in outcomes {
                switch outcome {
                case .success(let value): #expect(value == id)
                case .failure(let error):
                    let expected = id % 2_500 == 1_250 ? "42703" : id % 1_000 == 777 ? "22012" : "none"
                    #expect(error.sqlState == expected, "read \(id): \(error)")
                }
            }
            #expect(outcomes.count == 10_000)
            #expect(outcomes.values.filter { if case .failure = $0 { true } else { false } }.count == 14)
            await database.close()
        }
    }

    @Test("Reads share a statement and get their own rows; what the server refuses fails alone", arguments: [1, 2])
    func sharedStatement(_ connections: Int) async throws {
        try await withTestDatabase { _, connectionString in
            let database = Database(
                DatabaseConfiguration(connectionString: connectionString, readConnections: connections)
            ) { print($0) }
            let count = Statement(
                name: "count",
                sql: """
                    SELECT n.place, n.word, s.v
                    FROM unnest((SELECT $1::text[]), (SELECT $2::text[])) WITH ORDINALITY AS n(word, number, place)
                    JOIN LATERAL (SELECT generate_series(1, n.number::int4) AS v OFFSET 0) s ON true
                    """)
            let outcomes = await withTaskGroup(of: (Int, Result<[String], DatabaseError>).self) { group in
                for id in 0..<5_000 {
                    group.addTask {
                        do throws(DatabaseError) {
                            let number = id % 1_000 == 777 ? "many" : "\(id % 4)"
                            let rows = try await database.query(
                                count, [.text("w\(id % 7)"), .text(number)], isShared: true)
                            var found: [String] = []
                            for row in rows { found.append("\(try row.text("word")) \(try row.int("v"))") }
                            return (id, .success(found))
                        } catch {
                            return (id, .failure(error))
                        }
                    }
                }
                return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
            for (id, outcome) in outcomes {
                switch outcome {
                case .success(let found):
                    #expect(found.sorted() == (0..<id % 4).map { "w\(id % 7) \($0 + 1)" }, "read \(id)")
                case .failure(let error):
                    #expect(id % 1_000 == 777 && error.sqlState == "22P02", "read \(id): \(error)")
                }
            }
            #expect(outcomes.count == 5_000)
            #expect(outcomes.values.filter { if case .failure = $0 { true } else { false } }.count == 5)
            await database.close()
        }
    }

    @Test("Large answers and large parameters pass each other")
    func largeAnswersAndLargeParametersPassEachOther() async throws {
        try await withTestDatabase { database, _ in
            let echo = Statement(name: "echo", sql: "SELECT $1::bytea || $1::bytea AS v")
            let megabyte: [UInt8] = Array(repeating: 9, count: 1_048_576)
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<40 {
                    group.addTask { try await database.query(echo, [.bytea(megabyte)])[0].bytea("v").count }
                }
                for try await count in group { #expect(count == 2_097_152) }
            }
        }
    }
}
