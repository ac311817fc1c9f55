// SPDX-License-Identifier: MIT
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/parts.css";
import "./style/output.css";
import "./style/shell.css";
import "./style/phone.css";
import { App } from "./app";

const root = document.getElementById("app");
if (root) render(<App />, root);
