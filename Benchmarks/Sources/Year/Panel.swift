/// A part of a picture: a title, and axes that turn values into places.
struct Panel {
    private static let (left, width) = (92.0, 640.0)
    let title: String
    let top: Double
    let height: Double
    let xMax: Double
    let yMax: Double

    func x(_ value: Double) -> Double { Mark.rounded(Self.left + value / xMax * Self.width) }

    func y(_ value: Double) -> Double { Mark.rounded(top + height - value / yMax * height) }

    /// The title, and lines and numbers along the axes; none along the upright one without a step.
    func frame(xStep: Double, xName: String, yStep: Double? = nil) -> [String] {
        let bottom = top + height
        let upright = yStep.map { step in
            stride(from: 0, through: yMax, by: step).flatMap { value in
                [
                    Mark.line(Self.left, y(value), Self.left + Self.width, y(value), "#e4e4e4"),
                    Mark.text(Self.left - 8, y(value) + 4, "\(Int(value))", anchor: "end", fill: "#666"),
                ]
            }
        }
        let along = stride(from: 0, through: xMax, by: xStep).flatMap { value in
            [
                Mark.line(x(value), bottom, x(value), bottom + 4, "#888"),
                Mark.text(x(value), bottom + 17, "\(Int(value))", anchor: "middle", fill: "#666"),
            ]
        }
        return [Mark.text(16, top - 18, title, weight: "bold")] + (upright ?? []) + along + [
            Mark.text(Self.left + Self.width / 2, bottom + 34, xName, anchor: "middle", fill: "#666")
        ]
    }
}

/// The strokes of a picture.
enum Mark {
    static func rounded(_ place: Double) -> Double { (place * 10).rounded() / 10 }

    static func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ colour: String) -> String {
        #"<line x1="\#(x1)" y1="\#(y1)" x2="\#(x2)" y2="\#(y2)" stroke="\#(colour)"/>"#
    }

    static func bar(_ x: Double, _ y: Double, _ width: Double, _ height: Double, _ colour: String) -> String {
        let (width, height) = (rounded(width), rounded(height))
        return #"<rect x="\#(x)" y="\#(y)" width="\#(width)" height="\#(height)" fill="\#(colour)"/>"#
    }

    static func text(
        _ x: Double, _ y: Double, _ words: String, anchor: String = "start", weight: String = "normal",
        fill: String = "#222"
    ) -> String {
        #"<text x="\#(x)" y="\#(y)" text-anchor="\#(anchor)" font-weight="\#(weight)" fill="\#(fill)">\#(words)</text>"#
    }
}
