import TestSupport
import Testing

@testable import Postgres

/// The tests keep no row in it.
private let testDatabase = OncePerSuite<Database> { lend in
    try await withTestDatabase { database, _ in try await lend(database) }
}

@Suite("Every parameter type goes to the server and comes back the same", testDatabase) struct ValuesTests {
    /// Sends each value through `SELECT $1::type` and reads it back; nil stands for NULL.
    private func roundTrip<Value: Equatable & Sendable>(
        _ database: Database, _ type: String, _ values: [Value?], _ send: (Value?) -> Parameter,
        _ read: (Row) throws -> Value?
    ) async throws {
        for value in values {
            let rows = try await database.ask("SELECT $1::\(type) AS v", [send(value)])
            let row = try #require(rows.first)
            #expect(try read(row) == value, "\(type)")
            #expect(try row.isNull("v") == (value == nil), "\(type)")
        }
    }

    @Test("Scalars round trip")
    func scalarsRoundTrip() async throws {
        try await testDatabase.use { database in
            try await roundTrip(database, "bool", [true, false, nil], { .bool($0) }) { try $0.boolIfPresent("v") }
            try await roundTrip(database, "int2", [.min, -1, 0, .max, nil], { .int2($0) }) { try $0.int2IfPresent("v") }
            try await roundTrip(database, "int4", [.min, -1, 0, .max, nil], { .int4($0) }) { try $0.int4IfPresent("v") }
            try await roundTrip(database, "int8", [.min, -1, 0, .max, nil], { .int8($0) }) { try $0.int8IfPresent("v") }
            let doubles: [Double?] = [0, -0.1, .infinity, -.infinity, .leastNonzeroMagnitude, nil]
            try await roundTrip(database, "float8", doubles, { .float8($0) }) { try $0.float8IfPresent("v") }
            let texts = ["", "plain", "Grüße, 世界 👩‍👩‍👧 e\u{301}", "it's \"quoted\" \\ {a,b} NULL\n\t", nil]
            try await roundTrip(database, "text", texts, { .text($0) }) { try $0.textIfPresent("v") }
            let megabyte = (0..<1_048_576).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            try await roundTrip(database, "bytea", [[], [0, 255, 92], megabyte, nil], { .bytea($0) }) {
                try $0.byteaIfPresent("v")
            }
            try await roundTrip(database, "jsonb", ["{\"a\": [1, null, \"ü\"]}", "null", nil], { .jsonb($0) }) {
                try $0.textIfPresent("v")
            }
            let uuid = (0..<16).map { UInt8($0 * 16 + 1) }
            try await roundTrip(database, "uuid", [uuid, nil], { .uuid($0) }) { try $0.optional("v", .uuid) }
            let moments: [Int64?] = [0, -1, 1_700_000_000_123_456, -62_135_596_800_000_000, .max, .min, nil]
            try await roundTrip(database, "timestamptz", moments, { .timestamptz(microseconds: $0) }) {
                try $0.timestamptzIfPresent("v")
            }
        }
    }

    @Test("Arrays round trip")
    func arraysRoundTrip() async throws {
        try await testDatabase.use { database in
            func check<Value: Equatable & Sendable>(
                _ type: String, _ values: [Value?], _ send: ([Value?]) -> Parameter, _ read: (Row) throws -> [Value?]
            ) async throws {
                try await roundTrip(
                    database, "\(type)[]", [[], values, values + [nil], [nil]], { send($0 ?? []) }, read)
            }
            try await check("bool", [true, false], { .bools($0) }) {
                try $0.present("v", ColumnType<Bool>.bool.elements)
            }
            try await check("int2", [.min, .max], { .int2s($0) }) {
                try $0.present("v", ColumnType<Int16>.int2.elements)
            }
            try await check("int4", [.min, .max], { .int4s($0) }) {
                try $0.present("v", ColumnType<Int32>.int4.elements)
            }
            try await check("int8", [.min, .max], { .int8s($0) }) {
                try $0.present("v", ColumnType<Int64>.int8.elements)
            }
            try await check("float8", [0.5, -.infinity], { .float8s($0) }) {
                try $0.present("v", ColumnType<Double>.float8.elements)
            }
            try await check("text", ["", "a,b", "{}", "NULL", "世界"], { .texts($0) }) { try $0.textElements("v") }
            try await check("bytea", [[], [0, 1]], { .byteas($0) }) {
                try $0.present("v", ColumnType<[UInt8]>.bytea.elements)
            }
            try await check("jsonb", ["[1, 2]", "{}"], { .jsonbs($0) }) { try $0.textElements("v") }
            try await check("timestamptz", [0, .max, .min], { .timestamptzs($0) }) {
                try $0.present("v", ColumnType<Int64>.timestamptz.elements)
            }
            try await check("uuid", [Array(repeating: 7, count: 16)], { .uuids($0) }) {
                try $0.present("v", ColumnType<[UInt8]>.uuid.elements)
            }
        }
    }

    /// The server's own rendering, so that two mistakes cannot cancel each other out.
    @Test(
        "The server reads the same",
        arguments: [
            ("timestamptz", Parameter.timestamptz(microseconds: 951_782_400_000_001), "2000-02-29 00:00:00.000001"),
            ("timestamptz", .timestamptz(microseconds: .max), "infinity"),
            ("timestamptz", .timestamptz(microseconds: .min), "-infinity"),
            ("int4[]", .int4s([1, nil, -3]), "{1,NULL,-3}"),
            ("text[]", .texts(["a b", nil, "", "NULL"]), "{\"a b\",NULL,\"\",\"NULL\"}"),
            ("int8[]", .int8s([]), "{}"), ("float8", .float8(.nan), "NaN"), ("bytea", .bytea([0, 255]), "\\x00ff"),
            ("uuid", .uuid((0..<16).map { $0 }), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        ])
    func serverReadsTheSame(_ type: String, _ parameter: Parameter, _ rendering: String) async throws {
        try await testDatabase.use { database in
            let zone = type == "timestamptz" ? " AT TIME ZONE 'UTC'" : ""
            let rows = try await database.ask("SELECT ($1::\(type)\(zone))::text AS v", [parameter])
            #expect(try rows.first?.text("v") == rendering)
        }
    }

    @Test("Enums and other text arrive as text")
    func enumsAndOtherTextArriveAsText() async throws {
        try await testDatabase.use { database in
            try await database.script("CREATE TYPE mood AS ENUM ('calm', 'wild')")
            let sql = """
                SELECT $1::text::mood AS one, $2::text[]::mood[] AS many, 'n'::name AS name, '{}'::json AS json,
                       '00010203-0405-0607-0809-0a0b0c0d0e0f'::uuid AS uuid, 'v'::varchar AS short
                """
            let rows = try await database.ask(sql, [.text("wild"), .texts(["calm", "wild"])])
            let row = try #require(rows.first)
            #expect(row.table.columns == ["one", "many", "name", "json", "uuid", "short"])
            #expect(try row.text("one") == "wild")
            #expect(try row.texts("many") == ["calm", "wild"])
            #expect(try row.text("name") == "n")
            #expect(try row.text("json") == "{}")
            #expect(try row.text("uuid") == "00010203-0405-0607-0809-0a0b0c0d0e0f")
            #expect(try row.text("short") == "v")
        }
    }

    @Test("An array of a composite type is read value by value, as it is and as array_send writes it")
    func composites() async throws {
        try await testDatabase.use { database in
            try await database.script("CREATE TYPE pair AS (name text, number int)")
            let arrays: [(String, [String]?)] = [
                ("'{}'", []), ("ARRAY[('a', 1), (NULL, 2), ('c', NULL)]", ["a 1", "- 2", "c -"]),
                ("ARRAY[('a', 1), NULL]", nil), ("ARRAY[ARRAY[('a', 1)]]", nil), ("ARRAY[('refused', 1)]", nil),
                ("NULL", nil),
            ]
            for (array, expected) in arrays {
                for column in ["v", "array_send(v)"] {
                    let rows = try await database.ask("SELECT \(column) AS v FROM (SELECT (\(array))::pair[] AS v) s")
                    let row = try #require(rows.first)
                    var found: [String] = []
                    func read() throws {
                        try row.eachComposite("v", "pair") { fields in
                            let (name, number) = (fields.text(), fields.int4())
                            found.append("\(name ?? "-") \(number.map { "\($0)" } ?? "-")")
                            return name != "refused"
                        }
                    }
                    if let expected {
                        try read()
                        #expect(found == expected)
                    } else {
                        #expect(await databaseError { try read() }?.kind == .decoding, "\(array)")
                    }
                }
            }
        }
    }

    @Test("Readers refuse what does not fit")
    func readersRefuseWhatDoesNotFit() async throws {
        try await testDatabase.use { database in
            let sql = "SELECT 7::int2 AS small, 7::int8 AS large, NULL::text AS absent, ARRAY[1, NULL] AS holes"
            let row = try #require(try await database.ask(sql).first)
            #expect(try row.int("small") == 7)
            #expect(try row.int8("small") == 7)
            let refusals: [(String, (Row) throws -> Void, String)] = [
                ("too wide", { _ = try $0.int4("large") }, "large"),
                ("another type", { _ = try $0.text("large") }, "large"),
                ("null", { _ = try $0.text("absent") }, "absent"),
                ("null element", { _ = try $0.filled("holes", .int4) }, "holes"),
                ("not an array", { _ = try $0.filled("small", .int4) }, "small"),
                ("no such column", { _ = try $0.int4("missing") }, "missing"),
            ]
            for (name, read, column) in refusals {
                let error = await databaseError { try read(row) }
                #expect(error?.kind == .decoding, "\(name)")
                #expect(error?.message.contains("'\(column)'") == true, "\(name)")
            }
        }
    }
}
