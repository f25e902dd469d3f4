"""Charts as inline SVG, without a library and without a script. Pure: numbers in, markup out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from ..intervals import Interval
from .series import Series

WIDTH = 640
HEIGHT = 240
WIDE = 900
ROW = 30
LEFT = 52
RIGHT = 14
TOP = 12
BOTTOM = 34


@dataclass(frozen=True)
class Frame:
    """Where the values of a chart lie on the drawing."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float
    height: int = HEIGHT

    def x(self, value: float) -> float:
        return LEFT + (value - self.low_x) / (self.high_x - self.low_x) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return self.height - BOTTOM - (value - self.low_y) / (self.high_y - self.low_y) * (self.height - TOP - BOTTOM)


def frame_of(steps: Sequence[float], high_y: float, low_y: float = 0.0, pad: float = 0.0) -> Frame:
    low, high = min(steps), max(steps)
    if low == high:
        low, high = low - 1, high + 1
    return Frame(low - pad, high + pad, low_y, high_y)


def ticks_between(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round numbers that divide the range into about so many parts."""
    rough = (high - low) / wanted
    magnitude = 10 ** floor(log10(rough))
    step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= rough * 0.999)
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def step_ticks(first: int, last: int) -> list[int]:
    return sorted(
        {int(round(tick)) for tick in ticks_between(first, max(last, first + 1), 8)} & set(range(first, last + 1))
    )


def round_up(value: float) -> float:
    """The next number above that reads well on an axis."""
    if value <= 0:
        return 1.0
    magnitude: float = 10.0 ** floor(log10(value))
    return next(factor * magnitude for factor in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if factor * magnitude >= value * 0.999)


def number_text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def draw_axes(frame: Frame, x_ticks: Sequence[int], y_ticks: Sequence[float], x_label: str = "step") -> str:
    right = WIDTH - RIGHT
    base = frame.y(frame.low_y)
    parts = [
        f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{frame.y(tick):.1f}" y2="{frame.y(tick):.1f}"/>'
        f'<text class="tick" x="{LEFT - 8}" y="{frame.y(tick) + 4:.1f}" text-anchor="end">{number_text(tick)}</text>'
        for tick in y_ticks
    ]
    parts += [
        f'<text class="tick" x="{frame.x(tick):.1f}" y="{base + 16:.1f}" text-anchor="middle">{tick}</text>'
        for tick in x_ticks
    ]
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{base:.1f}" y2="{base:.1f}"/>')
    parts.append(f'<text class="tick" x="{right}" y="{frame.height - 3}" text-anchor="end">{escape(x_label)}</text>')
    return "".join(parts)


def wrap(title: str, body: str, height: int = HEIGHT, width: int = WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title, quote=True)}">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )


def draw_lines(title: str, lines: Sequence[tuple[Series, str]], high_y: float | None = None) -> str:
    """A line per series. `lines` is a list of (series, colour class)."""
    steps = [step for series, _ in lines for step, _ in series.points]
    known = [value for series, _ in lines for _, value in series.known]
    high = high_y or round_up(max(known, default=0))
    frame = frame_of(steps, high)
    body = draw_axes(frame, step_ticks(int(min(steps)), int(max(steps))), ticks_between(0, high))
    return wrap(title, body + "".join(draw_line(frame, series, colour) for series, colour in lines))


def draw_line(frame: Frame, series: Series, colour: str) -> str:
    """Unbroken stretches as lines; each point as a dot when there are few, with its number as a tooltip."""
    stretches: list[list[tuple[float, float]]] = []
    current: list[tuple[float, float]] = []
    for step, value in series.points:
        if value is None:
            stretches, current = [*stretches, current], []
        else:
            current.append((step, value))
    paths = [
        f'<polyline class="line {colour}" points="{" ".join(place(frame, point) for point in stretch)}"/>'
        for stretch in [*stretches, current]
        if stretch
    ]
    dots = [
        f'<circle class="dot {colour}" r="{3 if len(series.points) <= 60 else 1.5}" cx="{frame.x(step):.1f}" '
        f'cy="{frame.y(value):.1f}"><title>step {step:g}: {escape(series.name)} {value:.3g}</title></circle>'
        for step, value in series.known
    ]
    return "".join(paths + dots)


def place(frame: Frame, point: tuple[float, float]) -> str:
    return f"{frame.x(point[0]):.1f},{frame.y(point[1]):.1f}"


def draw_stack(title: str, layers: Sequence[tuple[Series, str]]) -> str:
    """Bars of shares that add up to one. `layers` is a list of (series, colour class), the lowest first."""
    steps = [step for step, _ in layers[0][0].points]
    gap = min((later - earlier for earlier, later in zip(steps, steps[1:], strict=False)), default=1)
    frame = frame_of(steps, 1.0, pad=gap / 2)
    width = max(1.0, (frame.x(steps[0] + gap) - frame.x(steps[0])) * 0.82)
    body = draw_axes(frame, step_ticks(int(steps[0]), int(steps[-1])), [0, 0.25, 0.5, 0.75, 1])
    base = [0.0] * len(steps)
    for series, colour in layers:
        for index, (step, value) in enumerate(series.points):
            if not value:
                continue
            top = frame.y(base[index] + value)
            body += (
                f'<rect class="bar {colour}" x="{frame.x(step) - width / 2:.1f}" width="{width:.1f}" y="{top:.1f}" '
                f'height="{frame.y(base[index]) - top:.1f}"><title>step {step:g}: {escape(series.name)} '
                f"{value:.0%}</title></rect>"
            )
            base[index] += value
    return wrap(title, body)


def draw_intervals(title: str, rows: Sequence[tuple[str, Interval, str]]) -> str:
    """A dot with its interval per row, on a scale from 0 to 1. `rows` is a list of (label, interval, colour class)."""
    height = ROW * len(rows) + 34
    left, right = 230, WIDE - 110

    def x(value: float) -> float:
        return left + value * (right - left)

    body = "".join(
        f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="6" y2="{height - 26}"/>'
        f'<text class="tick" x="{x(tick):.1f}" y="{height - 10}" text-anchor="middle">{tick:g}</text>'
        for tick in (0, 0.25, 0.5, 0.75, 1)
    )
    for index, (label, interval, colour) in enumerate(rows):
        y = 20 + ROW * index
        body += (
            f'<text class="label" x="{left - 14}" y="{y + 4}" text-anchor="end">{escape(label)}</text>'
            f'<line class="reach {colour}" x1="{x(interval.low):.1f}" x2="{x(interval.high):.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="dot {colour}" r="6" cx="{x(interval.mean):.1f}" cy="{y}"><title>{escape(label)}: '
            f"{interval.mean:.3f} ({interval.low:.3f} to {interval.high:.3f}), {interval.samples} samples"
            f'</title></circle><text class="value" x="{right + 24}" y="{y + 4}">{interval.mean:.2f} '
            f'<tspan class="tick">n={interval.samples}</tspan></text>'
        )
    return f'<div class="scroll">{wrap(title, body, height, WIDE)}</div>'
