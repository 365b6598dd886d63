import Logging
import Testing
import Tracking

@testable import perennial

@Suite struct SayTests {
    static let listing = Listing(
        columns: ["name", "count", "ok"],
        rows: [["a,\"b\"", 7, true], [nil, 1_234, false], ["c", nil, nil]])

    @Test func `a table is aligned`() {
        #expect(
            Self.listing.rendered(as: .table) == """
                NAME   COUNT  OK
                a,"b"      7  yes
                -       1234  no
                c          -  -
                """)
    }

    @Test func `CSV quotes what needs it`() {
        #expect(Self.listing.rendered(as: .csv) == "name,count,ok\r\n\"a,\"\"b\"\"\",7,yes\r\n,1234,no\r\nc,,")
    }

    @Test func `JSON keeps every key`() {
        #expect(
            Self.listing.json.rendered()
                == #"[{"count":7,"name":"a,\"b\"","ok":true},{"count":1234,"name":null,"ok":false},{"count":null,"name":"c","ok":null}]"#
        )
    }

    @Test func `a log line is one line, whatever the message holds`() {
        let metadata: Logger.Metadata = ["b": "x\ny", "a": ["k": "v"]]
        let text = LogFormat.text.line(
            time: "T", level: .info, label: "l", message: "one\ntwo\u{1B}[2J", metadata: metadata)
        #expect(text == #"T info l: one\u{a}two\u{1b}[2J a=["k": "v"] b=x\u{a}y"#)
        let json = LogFormat.json.line(time: "T", level: .error, label: "l", message: "a\nb", metadata: metadata)
        #expect(
            json == #"{"level":"error","logger":"l","message":"a\nb","metadata":{"a":{"k":"v"},"b":"x\ny"},"time":"T"}"#
        )
    }
}
